//! Finds secrets in the output of tools and replaces them by their kind. Hand-written scanners make
//! one pass each.
//!
//! A regular expression is compiled only if a person gave one. A secret that is cut off is replaced
//! as far as it goes.

use crate::judge::GuardEvent;
use crate::rules::{Active, Example, Params, Rule, RuleSet, no_check};

const fn rule(
    id: &'static str,
    about: &'static str,
    parameters: &'static [&'static str],
    bad: &'static [Example],
    good: &'static [Example],
) -> Rule {
    Rule {
        id,
        on: true,
        event: GuardEvent::After,
        forbids_commands: false,
        parameters,
        about,
        check: no_check,
        bad,
        good,
    }
}

pub(crate) const RULES: &[Rule] = &[
    rule(
        "sanitize-api-keys",
        "API keys of known forms never reach the model",
        &["additionalPatterns"],
        &[
            Example::Output("key: sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaa"),
            Example::Output("ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
            Example::Output("id AKIAIOSFODNN7EXAMPLE end"),
            Example::Output("GOOGLE=AIzaSyA1234567890abcdefghijklmnopqrstuvw"),
        ],
        &[Example::Output("task-list sk-short AKIA"), Example::Output("disk-aaaaaaaaaaaaaaaaaaaaaaaaaaaa")],
    ),
    rule(
        "sanitize-jwt",
        "JSON web tokens never reach the model",
        &[],
        &[Example::Output("t=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.SflKxwRJSMeKKF2QT4")],
        &[
            Example::Output("eyJshort.abc.def"),
            Example::Output("eyJaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbb"),
        ],
    ),
    rule(
        "sanitize-connection-strings",
        "passwords in addresses of databases never reach the model",
        &[],
        &[Example::Output("DB=postgres://u:p@h/d"), Example::Output("redis://:pw@localhost:6379")],
        &[Example::Output("postgres://localhost/d"), Example::Output("https://example.com/a:b@c")],
    ),
    rule(
        "sanitize-private-key-content",
        "private keys never reach the model",
        &[],
        &[Example::Output("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----")],
        &[Example::Output("-----BEGIN PUBLIC KEY-----\nMIIE")],
    ),
    rule(
        "sanitize-bearer-tokens",
        "bearer tokens never reach the model",
        &[],
        &[Example::Output("Authorization: Bearer abcdefghijklmnopqrstuvwxyz")],
        &[
            Example::Output("Authorization: Basic kkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"),
            Example::Output("the bearer of this letter"),
        ],
    ),
];

/// A text without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted {
    pub text: String,
    /// The rule that replaced something first.
    pub rule: String,
    /// What was replaced.
    pub reason: String,
}

/// A secret: where it is, what it is, and which rule found it.
struct SecretMatch {
    from: usize,
    to: usize,
    label: String,
    rule: &'static str,
}

/// The text without its secrets; `None` if it has none.
pub fn redact(text: &str, rules: &RuleSet) -> Option<Redacted> {
    let mut found = Vec::new();
    for active in rules.active(GuardEvent::After) {
        find(text, active, &mut found);
    }
    found.sort_by_key(|secret| (secret.from, std::cmp::Reverse(secret.to)));
    let first = found.first()?;
    let rule = first.rule.to_owned();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut labels: Vec<&str> = Vec::new();
    for secret in &found {
        if secret.from < at {
            // Two rules found overlapping text. What the second found beyond the first goes too.
            at = at.max(secret.to);
            continue;
        }
        out.push_str(text.get(at..secret.from).unwrap_or(""));
        out.push_str("[redacted: ");
        out.push_str(&secret.label);
        out.push(']');
        at = secret.to;
        if !labels.contains(&secret.label.as_str()) {
            labels.push(&secret.label);
        }
    }
    out.push_str(text.get(at..).unwrap_or(""));
    let reason = format!(
        "Redacted from the output: {}. Work without the value. If a program needs it, ask the person to provide it.",
        labels.join(", ")
    );
    Some(Redacted { text: out, rule, reason })
}

fn find(text: &str, active: &Active, found: &mut Vec<SecretMatch>) {
    let rule = active.rule.id;
    let mut add = |from: usize, to: usize, label: &str| {
        if from < to && text.is_char_boundary(from) && text.is_char_boundary(to) {
            found.push(SecretMatch { from, to, label: label.to_owned(), rule });
        }
    };
    match rule {
        "sanitize-api-keys" => {
            api_keys(text, &mut add);
            named_values(text, &mut add);
            webhooks(text, &mut add);
            additional(text, &active.params, &mut add);
        }
        "sanitize-jwt" => jwts(text, &mut add),
        "sanitize-connection-strings" => {
            connection_strings(text, &mut add);
            keyed_strings(text, &mut add);
        }
        "sanitize-private-key-content" => private_keys(text, &mut add),
        "sanitize-bearer-tokens" => bearer_tokens(text, &mut add),
        _ => {}
    }
}

/// A form of key: its start, the signs that follow, how many at least and at most, and what it is.
struct KeyForm {
    start: &'static str,
    signs: fn(u8) -> bool,
    least: usize,
    most: usize,
    label: &'static str,
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn dashed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn dotted(byte: u8) -> bool {
    dashed(byte) || byte == b'.'
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

const MAX_KEY_CHARS: usize = 4096;

const KEY_FORMS: &[KeyForm] = &[
    KeyForm { start: "sk-ant-", signs: dashed, least: 16, most: MAX_KEY_CHARS, label: "Anthropic key" },
    KeyForm { start: "sk-proj-", signs: dashed, least: 16, most: MAX_KEY_CHARS, label: "OpenAI key" },
    KeyForm { start: "sk-or-", signs: dashed, least: 16, most: MAX_KEY_CHARS, label: "OpenRouter key" },
    KeyForm { start: "sk-svcacct-", signs: dashed, least: 16, most: MAX_KEY_CHARS, label: "OpenAI key" },
    KeyForm { start: "sk-", signs: dashed, least: 20, most: MAX_KEY_CHARS, label: "API key" },
    KeyForm { start: "ghp_", signs: word, least: 30, most: MAX_KEY_CHARS, label: "GitHub token" },
    KeyForm { start: "gho_", signs: word, least: 30, most: MAX_KEY_CHARS, label: "GitHub token" },
    KeyForm { start: "ghu_", signs: word, least: 30, most: MAX_KEY_CHARS, label: "GitHub token" },
    KeyForm { start: "ghs_", signs: word, least: 30, most: MAX_KEY_CHARS, label: "GitHub token" },
    KeyForm { start: "ghr_", signs: word, least: 30, most: MAX_KEY_CHARS, label: "GitHub token" },
    KeyForm { start: "github_pat_", signs: dashed, least: 22, most: MAX_KEY_CHARS, label: "GitHub token" },
    KeyForm { start: "glpat-", signs: dashed, least: 20, most: MAX_KEY_CHARS, label: "GitLab token" },
    KeyForm { start: "gldt-", signs: dashed, least: 20, most: MAX_KEY_CHARS, label: "GitLab token" },
    KeyForm { start: "glrt-", signs: dashed, least: 20, most: MAX_KEY_CHARS, label: "GitLab token" },
    KeyForm { start: "xoxb-", signs: dashed, least: 10, most: MAX_KEY_CHARS, label: "Slack token" },
    KeyForm { start: "xoxp-", signs: dashed, least: 10, most: MAX_KEY_CHARS, label: "Slack token" },
    KeyForm { start: "xoxa-", signs: dashed, least: 10, most: MAX_KEY_CHARS, label: "Slack token" },
    KeyForm { start: "xoxr-", signs: dashed, least: 10, most: MAX_KEY_CHARS, label: "Slack token" },
    KeyForm { start: "xoxs-", signs: dashed, least: 10, most: MAX_KEY_CHARS, label: "Slack token" },
    KeyForm { start: "xoxe-", signs: dashed, least: 10, most: MAX_KEY_CHARS, label: "Slack token" },
    KeyForm { start: "xapp-", signs: dashed, least: 10, most: MAX_KEY_CHARS, label: "Slack token" },
    KeyForm { start: "hf_", signs: word, least: 30, most: MAX_KEY_CHARS, label: "Hugging Face token" },
    KeyForm { start: "AKIA", signs: upper, least: 16, most: 16, label: "AWS key" },
    KeyForm { start: "ASIA", signs: upper, least: 16, most: 16, label: "AWS key" },
    KeyForm { start: "AIza", signs: dashed, least: 35, most: MAX_KEY_CHARS, label: "Google key" },
    KeyForm { start: "ya29.", signs: dashed, least: 20, most: MAX_KEY_CHARS, label: "Google token" },
    KeyForm { start: "GOCSPX-", signs: dashed, least: 20, most: MAX_KEY_CHARS, label: "Google secret" },
    KeyForm { start: "sk_live_", signs: word, least: 16, most: MAX_KEY_CHARS, label: "Stripe key" },
    KeyForm { start: "sk_test_", signs: word, least: 16, most: MAX_KEY_CHARS, label: "Stripe key" },
    KeyForm { start: "rk_live_", signs: word, least: 16, most: MAX_KEY_CHARS, label: "Stripe key" },
    KeyForm { start: "rk_test_", signs: word, least: 16, most: MAX_KEY_CHARS, label: "Stripe key" },
    KeyForm { start: "whsec_", signs: word, least: 20, most: MAX_KEY_CHARS, label: "webhook secret" },
    KeyForm { start: "npm_", signs: word, least: 36, most: MAX_KEY_CHARS, label: "npm token" },
    KeyForm { start: "pypi-", signs: dashed, least: 40, most: MAX_KEY_CHARS, label: "PyPI token" },
    KeyForm { start: "rubygems_", signs: word, least: 40, most: MAX_KEY_CHARS, label: "RubyGems key" },
    KeyForm { start: "dop_v1_", signs: word, least: 40, most: MAX_KEY_CHARS, label: "DigitalOcean token" },
    KeyForm { start: "shpat_", signs: word, least: 30, most: MAX_KEY_CHARS, label: "Shopify token" },
    KeyForm { start: "SG.", signs: dotted, least: 40, most: MAX_KEY_CHARS, label: "SendGrid key" },
    KeyForm { start: "hvs.", signs: dashed, least: 24, most: MAX_KEY_CHARS, label: "Vault token" },
    KeyForm { start: "lin_api_", signs: word, least: 30, most: MAX_KEY_CHARS, label: "Linear key" },
    KeyForm { start: "gsk_", signs: word, least: 40, most: MAX_KEY_CHARS, label: "Groq key" },
    KeyForm { start: "xai-", signs: dashed, least: 40, most: MAX_KEY_CHARS, label: "xAI key" },
    KeyForm { start: "pplx-", signs: word, least: 30, most: MAX_KEY_CHARS, label: "Perplexity key" },
    KeyForm { start: "r8_", signs: word, least: 30, most: MAX_KEY_CHARS, label: "Replicate token" },
    KeyForm { start: "tvly-", signs: dashed, least: 20, most: MAX_KEY_CHARS, label: "Tavily key" },
    KeyForm { start: "dckr_pat_", signs: dashed, least: 20, most: MAX_KEY_CHARS, label: "Docker token" },
    KeyForm { start: "sntrys_", signs: dashed, least: 20, most: MAX_KEY_CHARS, label: "Sentry token" },
    KeyForm { start: "phc_", signs: word, least: 30, most: MAX_KEY_CHARS, label: "PostHog key" },
    KeyForm { start: "atlasv1.", signs: dashed, least: 40, most: MAX_KEY_CHARS, label: "Terraform token" },
    KeyForm { start: "AGE-SECRET-KEY-1", signs: upper, least: 40, most: MAX_KEY_CHARS, label: "age key" },
];

fn api_keys(text: &str, add: &mut impl FnMut(usize, usize, &str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        // A key starts at the start of a word.
        let begins = at
            .checked_sub(1)
            .and_then(|before| bytes.get(before))
            .is_none_or(|before| !word(*before) && *before != b'_' && *before != b'-');
        let form = if begins { form_at(bytes, at) } else { None };
        match form {
            Some((form, to)) => {
                add(at, to, form.label);
                at = to;
            }
            None => at += 1,
        }
    }
}

fn form_at(bytes: &[u8], at: usize) -> Option<(&'static KeyForm, usize)> {
    let rest = bytes.get(at..)?;
    let first = rest.first()?;
    KEY_FORMS.iter().filter(|form| form.start.as_bytes().first() == Some(first)).find_map(|form| {
        let body = rest.strip_prefix(form.start.as_bytes())?;
        let length = body.iter().take(form.most).take_while(|byte| (form.signs)(**byte)).count();
        // A form of a fixed length ends there.
        let ends = length < form.most || body.get(length).is_none_or(|byte| !(form.signs)(*byte));
        let is_random = form.start != "sk-" || looks_random(body.get(..length).unwrap_or(&[]));
        (length >= form.least && (ends || form.most == MAX_KEY_CHARS) && is_random)
            .then_some((form, at + form.start.len() + length))
    })
}

/// Whether a text is a key and not a name in kebab case: it has a long part without dashes, and
/// digits or both cases.
fn looks_random(body: &[u8]) -> bool {
    body.split(|byte| matches!(byte, b'-' | b'_')).any(|part| {
        let has = |fits: fn(&u8) -> bool| part.iter().any(fits);
        part.len() >= 20
            || part.len() >= 12
                && (has(u8::is_ascii_digit) || (has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)))
    })
}

/// Values behind a name that says what they are: `aws_secret_access_key = …`.
const NAMED_SECRETS: &[(&str, &str)] = &[
    ("aws_secret_access_key", "AWS secret key"),
    ("secretaccesskey", "AWS secret key"),
    ("aws_session_token", "AWS session token"),
    ("azure_client_secret", "Azure secret"),
];

fn named_values(text: &str, add: &mut impl FnMut(usize, usize, &str)) {
    let lower = text.to_ascii_lowercase();
    let bytes = text.as_bytes();
    for (name, label) in NAMED_SECRETS {
        for (at, _) in lower.match_indices(name) {
            let mut from = at + name.len();
            let is_between =
                |byte: &u8| matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'=' | b':' | b'\\' | b'>');
            while from < at + name.len() + 16 && bytes.get(from).is_some_and(is_between) {
                from += 1;
            }
            let is_value =
                |byte: &&u8| word(**byte) || matches!(byte, b'/' | b'+' | b'=' | b'-' | b'_' | b'~' | b'.');
            let length =
                bytes.get(from..).unwrap_or(&[]).iter().take(MAX_KEY_CHARS).take_while(is_value).count();
            if from > at + name.len() && length >= 16 {
                add(from, from + length, label);
            }
        }
    }
}

/// Addresses that let anyone who knows them post a message or start something.
const WEBHOOK_ADDRESSES: &[(&str, &str)] = &[
    ("hooks.slack.com/services/", "Slack webhook"),
    ("hooks.slack.com/workflows/", "Slack webhook"),
    ("hooks.slack.com/triggers/", "Slack webhook"),
    ("discord.com/api/webhooks/", "Discord webhook"),
    ("discordapp.com/api/webhooks/", "Discord webhook"),
    (".webhook.office.com/webhookb2/", "Teams webhook"),
    ("outlook.office.com/webhook/", "Teams webhook"),
    ("hooks.zapier.com/hooks/catch/", "Zapier webhook"),
    ("chat.googleapis.com/v1/spaces/", "Google Chat webhook"),
    ("api.telegram.org/bot", "Telegram token"),
    ("maker.ifttt.com/trigger/", "IFTTT webhook"),
];

fn webhooks(text: &str, add: &mut impl FnMut(usize, usize, &str)) {
    let bytes = text.as_bytes();
    for (address, label) in WEBHOOK_ADDRESSES {
        for (at, _) in text.match_indices(address) {
            let from = at + address.len();
            let is_part = |byte: &&u8| word(**byte) || b"/-_.~%?=&@:".contains(*byte);
            let length =
                bytes.get(from..).unwrap_or(&[]).iter().take(MAX_KEY_CHARS).take_while(is_part).count();
            if length >= 16 {
                add(from, from + length, label);
            }
        }
    }
}

/// `Server=x;User Id=y;Password=z;`, `AccountName=x;AccountKey=y`: the secret between a name and a
/// semicolon.
fn keyed_strings(text: &str, add: &mut impl FnMut(usize, usize, &str)) {
    const NAMES: &[&str] =
        &["password=", "pwd=", "accountkey=", "sharedaccesskey=", "sharedaccesssignature="];
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let lower = line.to_ascii_lowercase();
        let is_string = lower.contains(';')
            && [
                "server=",
                "data source=",
                "host=",
                "endpoint=",
                "accountname=",
                "user id=",
                "uid=",
                "database=",
                "initial catalog=",
            ]
            .iter()
            .any(|name| lower.contains(name));
        for name in NAMES.iter().filter(|_| is_string) {
            for (at, _) in lower.match_indices(name) {
                let from = at + name.len();
                let rest = line.get(from..).unwrap_or("");
                let length = rest.find([';', '"', '\'', '\n', '\r', ' ']).unwrap_or(rest.len());
                if length >= 3 && !rest.starts_with(['$', '<', '{', '*']) {
                    add(start + from, start + from + length, "connection string password");
                }
            }
        }
        start += line.len();
    }
}

fn additional(text: &str, params: &Params, add: &mut impl FnMut(usize, usize, &str)) {
    for pattern in params.additional_patterns.iter().take(64) {
        // An invalid regular expression finds nothing here. Rule files are checked on load.
        let Ok(regex) = regex_lite::Regex::new(&pattern.text) else { continue };
        for found in regex.find_iter(text).take(10_000) {
            add(found.start(), found.end(), &pattern.label);
        }
    }
}

fn jwts(text: &str, add: &mut impl FnMut(usize, usize, &str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("eyJ")) {
        let from = at + found;
        let mut end = from;
        let mut parts = 0;
        let mut is_long = true;
        loop {
            let start = end;
            while bytes.get(end).is_some_and(|byte| dashed(*byte)) {
                end += 1;
            }
            parts += 1;
            is_long &= end - start >= if parts == 3 { 6 } else { 10 };
            if parts == 3 || bytes.get(end) != Some(&b'.') {
                break;
            }
            end += 1;
        }
        if parts == 3 && is_long {
            add(from, end, "JSON web token");
        }
        at = end.max(from + 3);
    }
}

fn connection_strings(text: &str, add: &mut impl FnMut(usize, usize, &str)) {
    const SCHEMES: &[&str] = &[
        "postgres",
        "postgresql",
        "mysql",
        "mariadb",
        "mongodb",
        "mongodb+srv",
        "redis",
        "rediss",
        "amqp",
        "amqps",
        "mssql",
        "sqlserver",
        "oracle",
        "cockroachdb",
        "clickhouse",
        "ftp",
        "sftp",
        "smtp",
        "smtps",
        "ldap",
        "ldaps",
        "nats",
        "kafka",
        "cassandra",
        "couchbase",
        "neo4j",
        "bolt",
        "influxdb",
        "db2",
        "snowflake",
        "libsql",
        "mqtt",
        "mqtts",
        "postgresql+asyncpg",
        "postgresql+psycopg2",
        "mysql+pymysql",
        "jdbc",
        "http",
        "https",
    ];
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("://")) {
        let mark = at + found;
        let after = mark + 3;
        let mut from = mark;
        while from > at
            && bytes
                .get(from - 1)
                .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-'))
        {
            from -= 1;
        }
        let scheme = text.get(from..mark).unwrap_or("").to_ascii_lowercase();
        let rest = bytes.get(after..).unwrap_or(&[]);
        let length = rest
            .iter()
            .take(2048)
            .take_while(|byte| {
                !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\')
            })
            .count();
        let host = rest.get(..length).unwrap_or(&[]);
        let host_end = host.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(length);
        // A password may hold a slash. In a database's address the last `@` counts.
        let is_web = matches!(scheme.as_str(), "http" | "https");
        let authority = if is_web { host.get(..host_end) } else { Some(host) }.unwrap_or(&[]);
        let sign = authority.iter().rposition(|byte| *byte == b'@');
        let has_password = sign.is_some_and(|sign| {
            let user = authority.get(..sign).unwrap_or(&[]);
            user.iter().position(|byte| *byte == b':').is_some_and(|colon| colon + 1 < sign)
        });
        if has_password
            && (SCHEMES.contains(&scheme.as_str()) || scheme.contains("sql") || scheme.contains('+'))
        {
            add(from, after + length, "connection string");
        }
        at = after + length.max(1);
        while at < text.len() && !text.is_char_boundary(at) {
            at += 1;
        }
    }
}

fn private_keys(text: &str, add: &mut impl FnMut(usize, usize, &str)) {
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("-----BEGIN ")) {
        let from = at + found;
        let head: String =
            text.get(from..).unwrap_or("").chars().take(64).take_while(|sign| *sign != '\n').collect();
        if !head.contains("PRIVATE KEY") {
            at = from + 11;
            continue;
        }
        let body = text.get(from + 11..).unwrap_or("");
        let end = match body.find("-----END ") {
            Some(end) => {
                let tail = from + 11 + end;
                let rest = text.get(tail + 9..).unwrap_or("");
                tail + 9 + rest.find("-----").map_or(0, |close| close + 5)
            }
            // Cut off: everything that still looks like a key.
            None => {
                let mut end = from + head.len();
                for line in text.get(end..).unwrap_or("").split_inclusive('\n') {
                    let plain = line.trim();
                    let is_key = plain.bytes().all(|byte| {
                        word(byte) || matches!(byte, b'+' | b'/' | b'=' | b':' | b'-' | b',' | b' ' | b'\\')
                    });
                    if !is_key {
                        break;
                    }
                    end += line.len();
                }
                end
            }
        };
        add(from, end, "private key");
        at = end.max(from + 11);
    }
}

fn bearer_tokens(text: &str, add: &mut impl FnMut(usize, usize, &str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at + 7 <= bytes.len() {
        let here = bytes.get(at..at + 7).unwrap_or(&[]);
        let begins =
            at.checked_sub(1).and_then(|before| bytes.get(before)).is_none_or(|before| !word(*before));
        let is_basic = here.get(..6).is_some_and(|start| start.eq_ignore_ascii_case(b"basic "))
            && text
                .get(at.saturating_sub(20)..at)
                .is_some_and(|before| before.to_ascii_lowercase().contains("authorization"));
        if !begins || !(here.eq_ignore_ascii_case(b"bearer ") || is_basic) {
            at += 1;
            continue;
        }
        let from = at + if is_basic { 6 } else { 7 };
        let rest = bytes.get(from..).unwrap_or(&[]);
        let length = rest
            .iter()
            .take(MAX_KEY_CHARS)
            .take_while(|byte| word(**byte) || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'+' | b'/' | b'='))
            .count();
        // A word in a sentence has one case and no digits. Base64 has both cases and digits.
        let coded = rest.get(..length).unwrap_or(&[]);
        let is_coded = coded.iter().any(u8::is_ascii_uppercase)
            || coded.iter().any(|byte| *byte == b'=' || byte.is_ascii_digit());
        if length >= 20 && (!is_basic || is_coded) {
            add(from, from + length, if is_basic { "basic credentials" } else { "bearer token" });
        }
        at = from + length;
    }
}
