//! Secrets in what tools give back: found by hand-written scanners, one pass each, and replaced by what they were.
//!
//! No regular expression is compiled unless a person gave one. A secret that is cut off is replaced as far as it goes.

use crate::judge::Moment;
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
        event: Moment::After,
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
    /// The text.
    pub text: String,
    /// The rule that replaced something first.
    pub rule: String,
    /// What was replaced.
    pub reason: String,
}

/// A secret: where it stands, what it is, and which rule found it.
struct Found {
    from: usize,
    to: usize,
    label: String,
    rule: &'static str,
}

/// The text without its secrets; `None` where there are none.
pub fn redact(text: &str, rules: &RuleSet) -> Option<Redacted> {
    let mut found = Vec::new();
    for active in rules.active(Moment::After) {
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
            // Two rules found the same; what the second found beyond goes too.
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
        "Redacted from the output: {}. Work without the value; the person can give it to a program where it is needed.",
        labels.join(", ")
    );
    Some(Redacted { text: out, rule, reason })
}

fn find(text: &str, active: &Active, found: &mut Vec<Found>) {
    let rule = active.rule.id;
    let mut add = |from: usize, to: usize, label: &str| {
        if from < to && text.is_char_boundary(from) && text.is_char_boundary(to) {
            found.push(Found { from, to, label: label.to_owned(), rule });
        }
    };
    match rule {
        "sanitize-api-keys" => {
            api_keys(text, &mut add);
            additional(text, &active.params, &mut add);
        }
        "sanitize-jwt" => jwts(text, &mut add),
        "sanitize-connection-strings" => connection_strings(text, &mut add),
        "sanitize-private-key-content" => private_keys(text, &mut add),
        "sanitize-bearer-tokens" => bearer_tokens(text, &mut add),
        _ => {}
    }
}

/// A form of key: its start, which signs follow, how many at least and at most, and what it is.
struct Form {
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

const LONG: usize = 4096;

const FORMS: &[Form] = &[
    Form { start: "sk-ant-", signs: dashed, least: 16, most: LONG, label: "Anthropic key" },
    Form { start: "sk-proj-", signs: dashed, least: 16, most: LONG, label: "OpenAI key" },
    Form { start: "sk-or-", signs: dashed, least: 16, most: LONG, label: "OpenRouter key" },
    Form { start: "sk-svcacct-", signs: dashed, least: 16, most: LONG, label: "OpenAI key" },
    Form { start: "sk-", signs: dashed, least: 20, most: LONG, label: "API key" },
    Form { start: "ghp_", signs: word, least: 30, most: LONG, label: "GitHub token" },
    Form { start: "gho_", signs: word, least: 30, most: LONG, label: "GitHub token" },
    Form { start: "ghu_", signs: word, least: 30, most: LONG, label: "GitHub token" },
    Form { start: "ghs_", signs: word, least: 30, most: LONG, label: "GitHub token" },
    Form { start: "ghr_", signs: word, least: 30, most: LONG, label: "GitHub token" },
    Form { start: "github_pat_", signs: dashed, least: 22, most: LONG, label: "GitHub token" },
    Form { start: "glpat-", signs: dashed, least: 20, most: LONG, label: "GitLab token" },
    Form { start: "gldt-", signs: dashed, least: 20, most: LONG, label: "GitLab token" },
    Form { start: "glrt-", signs: dashed, least: 20, most: LONG, label: "GitLab token" },
    Form { start: "xoxb-", signs: dashed, least: 10, most: LONG, label: "Slack token" },
    Form { start: "xoxp-", signs: dashed, least: 10, most: LONG, label: "Slack token" },
    Form { start: "xoxa-", signs: dashed, least: 10, most: LONG, label: "Slack token" },
    Form { start: "xoxr-", signs: dashed, least: 10, most: LONG, label: "Slack token" },
    Form { start: "xoxs-", signs: dashed, least: 10, most: LONG, label: "Slack token" },
    Form { start: "xoxe-", signs: dashed, least: 10, most: LONG, label: "Slack token" },
    Form { start: "xapp-", signs: dashed, least: 10, most: LONG, label: "Slack token" },
    Form { start: "hf_", signs: word, least: 30, most: LONG, label: "Hugging Face token" },
    Form { start: "AKIA", signs: upper, least: 16, most: 16, label: "AWS key" },
    Form { start: "ASIA", signs: upper, least: 16, most: 16, label: "AWS key" },
    Form { start: "AIza", signs: dashed, least: 35, most: LONG, label: "Google key" },
    Form { start: "ya29.", signs: dashed, least: 20, most: LONG, label: "Google token" },
    Form { start: "GOCSPX-", signs: dashed, least: 20, most: LONG, label: "Google secret" },
    Form { start: "sk_live_", signs: word, least: 16, most: LONG, label: "Stripe key" },
    Form { start: "sk_test_", signs: word, least: 16, most: LONG, label: "Stripe key" },
    Form { start: "rk_live_", signs: word, least: 16, most: LONG, label: "Stripe key" },
    Form { start: "rk_test_", signs: word, least: 16, most: LONG, label: "Stripe key" },
    Form { start: "whsec_", signs: word, least: 20, most: LONG, label: "webhook secret" },
    Form { start: "npm_", signs: word, least: 36, most: LONG, label: "npm token" },
    Form { start: "pypi-", signs: dashed, least: 40, most: LONG, label: "PyPI token" },
    Form { start: "rubygems_", signs: word, least: 40, most: LONG, label: "RubyGems key" },
    Form { start: "dop_v1_", signs: word, least: 40, most: LONG, label: "DigitalOcean token" },
    Form { start: "shpat_", signs: word, least: 30, most: LONG, label: "Shopify token" },
    Form { start: "SG.", signs: dotted, least: 40, most: LONG, label: "SendGrid key" },
    Form { start: "hvs.", signs: dashed, least: 24, most: LONG, label: "Vault token" },
    Form { start: "lin_api_", signs: word, least: 30, most: LONG, label: "Linear key" },
    Form { start: "gsk_", signs: word, least: 40, most: LONG, label: "Groq key" },
    Form { start: "xai-", signs: dashed, least: 40, most: LONG, label: "xAI key" },
    Form { start: "pplx-", signs: word, least: 30, most: LONG, label: "Perplexity key" },
    Form { start: "r8_", signs: word, least: 30, most: LONG, label: "Replicate token" },
    Form { start: "tvly-", signs: dashed, least: 20, most: LONG, label: "Tavily key" },
    Form { start: "dckr_pat_", signs: dashed, least: 20, most: LONG, label: "Docker token" },
    Form { start: "sntrys_", signs: dashed, least: 20, most: LONG, label: "Sentry token" },
    Form { start: "phc_", signs: word, least: 30, most: LONG, label: "PostHog key" },
    Form { start: "atlasv1.", signs: dashed, least: 40, most: LONG, label: "Terraform token" },
    Form { start: "AGE-SECRET-KEY-1", signs: upper, least: 40, most: LONG, label: "age key" },
];

fn api_keys(text: &str, add: &mut impl FnMut(usize, usize, &str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        // A key begins where a word does.
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

fn form_at(bytes: &[u8], at: usize) -> Option<(&'static Form, usize)> {
    let rest = bytes.get(at..)?;
    let first = rest.first()?;
    FORMS.iter().filter(|form| form.start.as_bytes().first() == Some(first)).find_map(|form| {
        let body = rest.strip_prefix(form.start.as_bytes())?;
        let length = body.iter().take(form.most).take_while(|byte| (form.signs)(**byte)).count();
        // A form of a fixed length ends there.
        let ends = length < form.most || body.get(length).is_none_or(|byte| !(form.signs)(*byte));
        (length >= form.least && (ends || form.most == LONG))
            .then_some((form, at + form.start.len() + length))
    })
}

fn additional(text: &str, params: &Params, add: &mut impl FnMut(usize, usize, &str)) {
    for pattern in params.additional_patterns.iter().take(64) {
        // One that is no regular expression finds nothing here; rule files are checked when they are loaded.
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
        // A password may hold a slash: the last `@` counts where the address of a database has one.
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
        if !begins || !here.eq_ignore_ascii_case(b"bearer ") {
            at += 1;
            continue;
        }
        let from = at + 7;
        let rest = bytes.get(from..).unwrap_or(&[]);
        let length = rest
            .iter()
            .take(LONG)
            .take_while(|byte| word(**byte) || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'+' | b'/' | b'='))
            .count();
        if length >= 20 {
            add(from, from + length, "bearer token");
        }
        at = from + length;
    }
}
