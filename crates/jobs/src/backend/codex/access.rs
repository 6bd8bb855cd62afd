//! What a thread may do: Codex's sandbox and approval policy for a task, with the user's own
//! denials on top of them.
//!
//! | task | sandbox | asks |
//! |---|---|---|
//! | read-only | read-only | never |
//! | ask | read-only | before a file is edited, and when the model wants to leave the sandbox |
//! | edits | workspace-write | when the model wants to leave the sandbox |
//! | all | danger-full-access | never |
//!
//! The user's rules (`rules/*.rules`), hooks and managed requirements apply in each of them. The
//! user's permission profile does not, because Codex takes either a profile or a sandbox. So if the
//! user's default profile denies something, the thread gets its own profile: the built-in one for
//! the task, with those denials.

use crate::backend::Task;
use baton_core::job::Allow;
use serde_json::{Map, Value, json};

/// The name of the profile that exists for one thread only.
const PROFILE_NAME: &str = "baton-job";
const MAX_ANCESTORS: usize = 16;

/// The parameters of `thread/start` and `thread/resume` for this task, with the user's
/// configuration from `config/read`.
pub(super) fn parameters(task: &Task, config: &Value) -> Map<String, Value> {
    let Level { sandbox, builtin, approval } = Level::of(task);
    let mut parameters = Map::new();
    parameters.insert("approvalPolicy".to_owned(), approval.into());
    parameters.insert("approvalsReviewer".to_owned(), "user".into());
    let denied = Denied::of(config);
    if denied.is_empty() {
        parameters.insert("sandbox".to_owned(), sandbox.into());
    } else {
        let profile = format!("permissions.{PROFILE_NAME}");
        parameters.insert("permissions".to_owned(), PROFILE_NAME.into());
        parameters.insert("config".to_owned(), json!({profile: denied.on_top_of(builtin)}));
    }
    parameters
}

/// The sandbox type that Codex must report for a read-only task.
pub(super) const READ_ONLY_SANDBOX: &str = "readOnly";

/// What a task may do, in Codex's words.
struct Level {
    sandbox: &'static str,
    /// The built-in profile that is the same as the sandbox; `None` if the thread may do
    /// everything.
    builtin: Option<&'static str>,
    /// When to ask.
    approval: &'static str,
}

impl Level {
    fn of(task: &Task) -> Self {
        let (sandbox, builtin, approval) = match task.allow {
            _ if task.read_only => ("read-only", Some(":read-only"), "never"),
            Allow::Ask => ("read-only", Some(":read-only"), "on-request"),
            Allow::Edits => ("workspace-write", Some(":workspace"), "on-request"),
            Allow::All => ("danger-full-access", None, "never"),
        };
        Self { sandbox, builtin, approval }
    }
}

/// What the user's default profile denies.
#[derive(Debug, Default)]
struct Denied {
    files: Map<String, Value>,
    domains: Map<String, Value>,
    depth: Option<Value>,
}

impl Denied {
    fn of(config: &Value) -> Self {
        let mut denied = Self::default();
        let mut name = config["default_permissions"].as_str();
        for _ in 0..MAX_ANCESTORS {
            let Some(profile) = name.and_then(|name| config["permissions"].get(name)) else { break };
            for (path, access) in profile["filesystem"].as_object().into_iter().flatten() {
                if path == "glob_scan_max_depth" && !access.is_null() {
                    denied.depth.get_or_insert_with(|| access.clone());
                } else if let Some(kept) = denials(access) {
                    merge(&mut denied.files, path, kept);
                }
            }
            for (domain, access) in profile["network"]["domains"].as_object().into_iter().flatten() {
                if let Some(kept) = denials(access) {
                    merge(&mut denied.domains, domain, kept);
                }
            }
            name = profile["extends"].as_str();
        }
        denied
    }

    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.domains.is_empty()
    }

    fn on_top_of(self, builtin: Option<&str>) -> Value {
        let mut files = self.files;
        if let Some(depth) = self.depth {
            files.insert("glob_scan_max_depth".to_owned(), depth);
        }
        match builtin {
            Some(builtin) => json!({"extends": builtin, "filesystem": files}),
            None => {
                files.entry(":root").or_insert_with(|| "write".into());
                let mut network = json!({"enabled": true});
                if !self.domains.is_empty() {
                    let mut domains = self.domains;
                    domains.entry("*").or_insert_with(|| "allow".into());
                    network["domains"] = domains.into();
                }
                json!({"filesystem": files, "network": network})
            }
        }
    }
}

/// What an entry denies: itself, or some entries below it.
fn denials(access: &Value) -> Option<Value> {
    match access {
        Value::String(word) => matches!(word.as_str(), "deny" | "none").then(|| access.clone()),
        Value::Object(below) => {
            let kept: Map<String, Value> =
                below.iter().filter_map(|(path, access)| Some((path.clone(), denials(access)?))).collect();
            (!kept.is_empty()).then(|| kept.into())
        }
        _ => None,
    }
}

/// Adds a denial, or what is denied below it.
fn merge(into: &mut Map<String, Value>, path: &str, denied: Value) {
    match (into.get_mut(path), denied) {
        (Some(Value::Object(known)), Value::Object(more)) => {
            for (path, denied) in more {
                known.entry(path).or_insert(denied);
            }
        }
        (_, denied) => _ = into.insert(path.to_owned(), denied),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_of_a_profile_and_its_ancestors_are_kept_and_nothing_else() {
        let config = json!({"default_permissions": "mine", "permissions": {
            "base": {"extends": null, "filesystem": {
                "glob_scan_max_depth": 3, "/secret": "deny", ":root": "read", ":workspace_roots": {"**/*.env": "deny", ".": "write"},
            }},
            "mine": {"extends": "base", "filesystem": {":workspace_roots": {"keys": "none"}},
                     "network": {"domains": {"evil.example": "deny", "good.example": "allow"}}},
            "other": {"filesystem": {"/elsewhere": "deny"}},
        }});
        let full = Denied::of(&config).on_top_of(None);
        assert_eq!(
            full,
            json!({
                "filesystem": {
                    "/secret": "deny", ":root": "write", "glob_scan_max_depth": 3,
                    ":workspace_roots": {"**/*.env": "deny", "keys": "none"},
                },
                "network": {"enabled": true, "domains": {"evil.example": "deny", "*": "allow"}},
            })
        );
        let narrow = Denied::of(&config).on_top_of(Some(":read-only"));
        assert_eq!(narrow["extends"], ":read-only");
        assert!(narrow["filesystem"].get(":root").is_none() && narrow.get("network").is_none());
    }

    #[test]
    fn a_profile_that_names_itself_is_followed_once_around() {
        let config = json!({"default_permissions": "a", "permissions": {"a": {"extends": "a"}}});
        assert!(Denied::of(&config).is_empty());
        assert!(Denied::of(&json!({"default_permissions": ":workspace"})).is_empty());
    }
}
