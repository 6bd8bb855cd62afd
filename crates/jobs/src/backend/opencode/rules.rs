//! What a job may do, as rules of its OpenCode session.
//!
//! The rules of a session come after those of its agent, and the last rule that fits decides. So a
//! plain `* allow` would override what the user denies. Therefore the agent's own rules, which
//! include the user's, are repeated in their order, with what the job loosens in their place: a
//! deny stays where it was. Rules that are sent later to the same session come after these, so a
//! resumed session gets what the new job may do.

use baton_core::job::Allow;
use serde_json::{Value, json};

/// Everything that a read-only job may still ask for. Shell commands, edits, subagents and tools of
/// other servers are not among it.
const READING_TOOLS: &[&str] = &[
    "read",
    "glob",
    "grep",
    "list",
    "lsp",
    "codesearch",
    "webfetch",
    "websearch",
    "skill",
    "todoread",
    "todowrite",
    "question",
    "external_directory",
    "doom_loop",
];

/// The rules of a session, by the rules of its agent.
pub(super) fn of(agent: &Value, allow: Allow, read_only: ReadOnly) -> Vec<Value> {
    let own: Vec<Rule<'_>> = agent.as_array().into_iter().flatten().filter_map(Rule::read).collect();
    match read_only {
        ReadOnly::Yes => reading_only(&own, allow),
        ReadOnly::No => match allow {
            Allow::Ask => own.iter().map(Rule::write).collect(),
            Allow::Edits => {
                let edits = own.iter().filter_map(|rule| rule.about("edit")).map(|rule| rule.loosened());
                own.iter().map(Rule::write).chain(edits.map(|rule| rule.write())).collect()
            }
            Allow::All => {
                let first = Rule { permission: "*", pattern: "*", action: "allow" };
                std::iter::once(first)
                    .chain(own.iter().map(Rule::loosened))
                    .map(|rule| rule.write())
                    .collect()
            }
        },
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOnly {
    Yes,
    No,
}

fn reading_only(own: &[Rule<'_>], allow: Allow) -> Vec<Value> {
    let nothing = Rule { permission: "*", pattern: "*", action: "deny" };
    let mut rules = vec![nothing.write()];
    for permission in READING_TOOLS {
        for rule in own.iter().filter_map(|rule| rule.about(permission)) {
            let rule = if allow == Allow::All { rule.loosened() } else { rule };
            rules.push(rule.write());
        }
    }
    rules
}

#[derive(Clone, Copy)]
struct Rule<'a> {
    permission: &'a str,
    pattern: &'a str,
    action: &'a str,
}

impl<'a> Rule<'a> {
    fn read(rule: &'a Value) -> Option<Self> {
        let word = |name: &str| rule[name].as_str();
        Some(Self { permission: word("permission")?, pattern: word("pattern")?, action: word("action")? })
    }

    fn write(&self) -> Value {
        json!({"permission": self.permission, "pattern": self.pattern, "action": self.action})
    }

    /// The same, without asking.
    fn loosened(&self) -> Self {
        Self { action: if self.action == "ask" { "allow" } else { self.action }, ..*self }
    }

    /// What this rule says about one permission, if it says something.
    fn about<'b>(&self, permission: &'b str) -> Option<Rule<'b>>
    where
        'a: 'b,
    {
        let Self { pattern, action, .. } = *self;
        fits(self.permission, permission).then_some(Rule { permission, pattern, action })
    }
}

/// Whether a rule's pattern covers what is asked for. `git *` covers `git` too.
pub(super) fn covers(pattern: &str, text: &str) -> bool {
    fits(pattern, text) || pattern.strip_suffix(" *").is_some_and(|alone| fits(alone, text))
}

/// OpenCode's wildcards: `*` is any text, `?` any character.
fn fits(wildcard: &str, text: &str) -> bool {
    match wildcard.chars().next() {
        None => text.is_empty(),
        Some('*') => {
            let rest = &wildcard[1..];
            fits(rest, text) || text.char_indices().any(|(at, c)| fits(rest, &text[at + c.len_utf8()..]))
        }
        Some(first) => text.chars().next().is_some_and(|c| {
            (first == '?' || first == c) && fits(&wildcard[first.len_utf8()..], &text[c.len_utf8()..])
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As OpenCode decides.
    fn decide(rules: &[Value], permission: &str, pattern: &str) -> String {
        let word = |rule: &Value, name: &str| rule[name].as_str().unwrap().to_owned();
        let last = rules.iter().rfind(|rule| {
            fits(&word(rule, "permission"), permission) && fits(&word(rule, "pattern"), pattern)
        });
        last.map_or_else(|| "ask".to_owned(), |rule| word(rule, "action"))
    }

    fn rules(text: &str) -> Vec<Value> {
        let rule = |line: &str| {
            let words: Vec<&str> = line.split('|').map(str::trim).collect();
            json!({"permission": words[0], "pattern": words[1], "action": words[2]})
        };
        text.lines().filter(|line| line.contains('|')).map(rule).collect()
    }

    #[test]
    fn a_job_gets_what_it_is_given_and_a_deny_stays_a_deny() {
        let own = rules(
            "* | * | allow
             doom_loop | * | ask
             external_directory | * | ask
             read | *.env | ask
             bash | * | ask
             bash | rm * | deny
             bash | ls * | allow
             edit | * | ask
             edit | secret/* | deny
             webfetch | * | deny",
        );
        let table = [
            // permission, pattern, ask, edits, all, read-only
            ("bash", "make", "ask", "ask", "allow", "deny"),
            ("bash", "rm -r x", "deny", "deny", "deny", "deny"),
            ("bash", "ls x", "allow", "allow", "allow", "deny"),
            ("edit", "src/a.rs", "ask", "allow", "allow", "deny"),
            ("edit", "secret/a", "deny", "deny", "deny", "deny"),
            ("webfetch", "http://x", "deny", "deny", "deny", "deny"),
            ("read", "a.env", "ask", "ask", "allow", "ask"),
            ("read", "a.rs", "allow", "allow", "allow", "allow"),
            ("external_directory", "/etc/*", "ask", "ask", "allow", "ask"),
            ("task", "general", "allow", "allow", "allow", "deny"),
            ("server_tool", "*", "allow", "allow", "allow", "deny"),
        ];
        let own_value = Value::from(own.clone());
        let made = |allow, read_only| of(&own_value, allow, read_only);
        for (permission, pattern, ask, edits, all, reading) in table {
            for (allow, read_only, wanted) in [
                (Allow::Ask, ReadOnly::No, ask),
                (Allow::Edits, ReadOnly::No, edits),
                (Allow::All, ReadOnly::No, all),
                (Allow::Edits, ReadOnly::Yes, reading),
            ] {
                // The agent's rules come first, and before them those of an earlier job of the
                // session.
                let mut before = own.clone();
                before.extend(made(Allow::All, ReadOnly::No));
                before.extend(made(allow, read_only));
                let got = decide(&before, permission, pattern);
                assert_eq!(got, wanted, "{permission} {pattern} under {allow:?} {read_only:?}");
            }
        }
    }

    #[test]
    fn a_pattern_covers_what_it_says() {
        for (pattern, text, covered) in [
            ("*", "anything at all", true),
            ("git status *", "git status", true),
            ("git status *", "git status -s", true),
            ("git status *", "git statusx", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*.env", "x/.env", true),
            ("*.env", "x.envrc", false),
            ("ä*", "äöü", true),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(covers(pattern, text), covered, "{pattern} {text}");
        }
    }

    #[test]
    fn a_job_that_reads_is_asked_less_if_it_may_do_all() {
        let own = Value::from(rules("* | * | ask"));
        assert_eq!(decide(&of(&own, Allow::All, ReadOnly::Yes), "read", "x"), "allow");
        assert_eq!(decide(&of(&own, Allow::Ask, ReadOnly::Yes), "read", "x"), "ask");
        assert_eq!(decide(&of(&own, Allow::All, ReadOnly::Yes), "bash", "x"), "deny");
        assert_eq!(decide(&of(&Value::Null, Allow::All, ReadOnly::Yes), "bash", "x"), "deny");
    }
}
