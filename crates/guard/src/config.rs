//! Rule files: a `[guard]` table in TOML, checked on load, with the line and column of whatever is wrong.

use crate::rules::{Params, Pattern};
use serde_json::Value;

/// The parameters of a rule from JSON, as `guard check --params` takes them. What is not understood is left out.
pub fn params_of(json: &Value) -> Params {
    let texts = |key: &str| -> Vec<String> {
        let values = json.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or(&[]);
        values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let text = |key: &str| json.get(key).and_then(Value::as_str).map(str::to_owned);
    let patterns = json.get("additionalPatterns").and_then(Value::as_array).map(Vec::as_slice).unwrap_or(&[]);
    Params {
        allow_patterns: texts("allowPatterns"),
        allow_paths: texts("allowPaths"),
        protected_branches: json.get("protectedBranches").map(|_| texts("protectedBranches")),
        additional_patterns: patterns
            .iter()
            .filter_map(|pattern| match pattern {
                Value::String(text) => Some(Pattern { text: text.clone(), label: text.clone() }),
                pattern => {
                    let text = pattern.get("regex")?.as_str()?.to_owned();
                    let label = pattern.get("label").and_then(Value::as_str).unwrap_or("secret").to_owned();
                    Some(Pattern { text, label })
                }
            })
            .collect(),
        allowed: texts("allowed"),
        blocked: texts("blocked"),
        threshold_kb: json.get("thresholdKb").and_then(Value::as_u64),
        times: json.get("times").and_then(Value::as_u64).and_then(|times| u32::try_from(times).ok()),
        remote: text("remote"),
        base_branch: text("baseBranch"),
        hint: text("hint"),
    }
}
