//! Finds job ids in a tool's result, and tells whether the result only announces that a job is
//! running.
//!
//! Nothing here knows which jobs exist. The caller compares the ids with the jobs that really run.

use crate::id::JobId;

/// How many ids are taken from one text. A result about more jobs than this needs no hint.
const MAX_IDS: usize = 8;
/// Bytes of a text that are searched. This bounds the work of a hook.
const SCANNED_BYTES: usize = 256 << 10;
/// Length of an id as text: a letter and the characters that `id` makes of its random bytes.
const ID_CHARS: usize = 13;
/// Longest text that counts as an announcement. A real result, however poor, has more to say.
const MAX_ANNOUNCEMENT_CHARS: usize = 600;
const MAX_ANNOUNCEMENT_LINES: usize = 8;

/// The ids of jobs in a text, each once, in order.
pub fn ids(text: &str) -> Vec<JobId> {
    let mut found = Vec::new();
    let mut end = text.len().min(SCANNED_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let within = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    for word in text[..end].split(|c| !within(c)) {
        if word.len() != ID_CHARS || found.len() == MAX_IDS {
            continue;
        }
        found.extend(JobId::parse(word).filter(|id| !found.contains(id)));
    }
    found
}

/// Phrases that say that something was started.
const BEGUN_PHRASES: &[&str] = &[
    "started",
    "launched",
    "dispatched",
    "delegated",
    "queued",
    "submitted",
    "kicked off",
    "is running",
    "now running",
    "still running",
    "is in progress",
    "in the background",
    "has begun",
    "is working on",
    "handed to",
    "handed off",
];

/// Phrases that say that the end is still to come.
const PENDING_PHRASES: &[&str] = &[
    "wait",
    "in the background",
    "running",
    "in progress",
    "will report",
    "'ll report",
    "will let you know",
    "'ll let you know",
    "will notify",
    "will be notified",
    "'ll notify",
    "check back",
    "check on it",
    "will check",
    "'ll check",
    "monitor",
    "will return",
    "will follow up",
    "once it ",
    "once the job",
    "when it ",
    "when the job",
    "not finished yet",
    "not yet finished",
    "no result yet",
    "queued",
];

/// Phrases that say that there is a result.
const DONE_PHRASES: &[&str] = &[
    "completed",
    "finished",
    "succeeded",
    "failed",
    "done",
    "found",
    "fixed",
    "changed",
    "added",
    "removed",
    "wrote",
    "written",
    "returned",
    "answered",
    "reported",
    "error",
    "result:",
    "result is",
    "results:",
    "concluded",
    "passed",
    "reviewed",
    "cancelled",
];

/// Phrases that, before one of [`DONE_PHRASES`], mean that the result is still to come.
const NOT_YET_PHRASES: &[&str] =
    &["once ", "when ", "until ", "after ", "as soon as ", "not ", "n't ", "no ", "if "];

/// Whether a text only announces that a job was started and is running.
///
/// Every sentence must be about that, none may report a result, and nothing may be quoted. A text
/// that talks about such announcements, or source code that contains them, does not count.
pub fn is_announcement(text: &str) -> bool {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > MAX_ANNOUNCEMENT_CHARS {
        return false;
    }
    if text.starts_with('{') {
        return is_start_output(text);
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.len() > MAX_ANNOUNCEMENT_LINES || lines.iter().any(|line| is_quoted(line)) {
        return false;
    }
    let text = text.to_lowercase().replace('\u{2019}', "'");
    let sentences: Vec<&str> =
        text.split(['\n', '.', '!', ';', '…']).map(str::trim).filter(|sentence| !is_bare(sentence)).collect();
    let says = |words: &[&str]| sentences.iter().any(|sentence| has(sentence, words));
    says(BEGUN_PHRASES)
        && says(PENDING_PHRASES)
        && sentences.iter().all(|sentence| {
            (has(sentence, BEGUN_PHRASES) || has(sentence, PENDING_PHRASES)) && !is_outcome(sentence)
        })
}

/// Whether it is the output of `job start --json`, unchanged.
fn is_start_output(text: &str) -> bool {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    compact.starts_with("{\"")
        && compact.ends_with('}')
        && compact.contains("\"job_id\":\"j")
        && ["queued", "starting", "running"]
            .iter()
            .any(|status| compact.contains(&format!("\"status\":\"{status}\"")))
        && !compact.contains("\"result\":\"")
}

/// Whether a text has code, quotations or quoted names, which belong to another text. A job id or a
/// baton command in backticks does not count.
fn is_quoted(line: &str) -> bool {
    let ours = |inner: &str| !ids(inner).is_empty() || inner.starts_with("baton ");
    let backticks: Vec<&str> = line.split('`').collect();
    let foreign = backticks.iter().skip(1).step_by(2).any(|inner| !ours(inner));
    line.starts_with('>')
        || line.starts_with("//")
        || line.starts_with('#')
        || line.contains("```")
        || line.contains(['"', '“', '”', '«', '»', '{', '}', '='])
        || backticks.len().is_multiple_of(2)
        || foreign
}

/// A label and an id, or nothing at all.
fn is_bare(sentence: &str) -> bool {
    let words = sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.into_iter().all(|word| {
        matches!(word, "job" | "id" | "task" | "the" | "its" | "is" | "status") || !ids(word).is_empty()
    })
}

fn has(sentence: &str, words: &[&str]) -> bool {
    words.iter().any(|word| sentence.contains(word))
}

/// Whether a sentence reports a result, and not only that one will come.
fn is_outcome(sentence: &str) -> bool {
    DONE_PHRASES.iter().any(|word| {
        sentence.match_indices(word).any(|(at, _)| {
            let begins = !sentence[..at].ends_with(char::is_alphanumeric);
            begins && !has(&sentence[..at], NOT_YET_PHRASES)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8) -> JobId {
        JobId::from_random([byte; crate::id::ID_BYTES])
    }

    #[test]
    fn ids_are_whole_words() {
        let (a, b) = (id(1), id(2));
        for (text, found) in [
            (format!("{a}"), vec![a.clone()]),
            (format!("job {a}, then {b} and {a} again"), vec![a.clone(), b.clone()]),
            (format!("{{\"job_id\":\"{a}\",\"log\":\"/x/jobs/{a}/log\"}}"), vec![a.clone()]),
            (format!("x{a} {a}x {a}_1 {a}-b"), vec![]),
            ("jobs, j, junction12345, just-a-thing1".to_owned(), vec![]),
            (String::new(), vec![]),
            (format!("{}\u{e9}{a}", "x".repeat(300_000)), vec![]),
        ] {
            assert_eq!(ids(&text), found, "{text:.80}");
        }
    }

    #[test]
    fn announcements_are_noticed() {
        let job = id(3);
        for text in [
            "Started, waiting.".to_owned(),
            format!("Job {job} started. Waiting for the result."),
            format!("The job `{job}` has been started in the background. I'll report back once it completes."),
            format!("I've dispatched the task to Codex.\n\nJob ID: {job}\n\nI will notify you when it finishes."),
            format!("Task delegated to codex and is running in the background (job {job})."),
            "The job is still running; I'll check back when it is done.".to_owned(),
            format!("Job {job} was queued. Use `baton job wait {job}` and wait for it."),
            "The Codex job was launched and it\u{2019}s in progress. I\u{2019}ll let you know when it has finished.".to_owned(),
            format!("{{\"job_id\": \"{job}\", \"status\": \"queued\", \"log\": \"/x\", \"again\": false}}"),
        ] {
            assert!(is_announcement(&text), "{text}");
        }
    }

    #[test]
    fn results_quotations_and_sources_are_not() {
        let job = id(3);
        for text in [
            String::new(),
            "42".to_owned(),
            "Done.".to_owned(),
            "The job was started and completed: all tests pass.".to_owned(),
            format!("Job {job} finished. The result is 42."),
            format!("Job {job} failed: the model is not known."),
            "ERROR: the job was started, but it failed after 3 s".to_owned(),
            "I waited for the job. It found two bugs in parser.rs.".to_owned(),
            "The wrapper answered \"Started, waiting.\" instead of a result.".to_owned(),
            "> Started, waiting.".to_owned(),
            "The phrase `started, waiting` appears in notice.rs.".to_owned(),
            "```\nStarted, waiting.\n```".to_owned(),
            "// Says that something was set going.\nconst BEGUN_PHRASES: &[&str] = &[\"started\", \"launched\"];"
                .to_owned(),
            "const PENDING_PHRASES: &[&str] = &[\"wait\", \"in the background\"];".to_owned(),
            "assert!(is_announcement(\"Started, waiting.\"));".to_owned(),
            "# Jobs\nA job is started and waits in the background.".to_owned(),
            "The server was started on port 8080. Open it in a browser.".to_owned(),
            "The queue module starts workers; each waits for a lock. It lies in src/queue.rs.".to_owned(),
            "Three processes run. The second one has a deadlock.".to_owned(),
            "Waiting for a lock is the cause. Use a timeout.".to_owned(),
            "I started by reading the code. The bug is in line 3.".to_owned(),
            format!("Started, waiting. {}", "More about what the code does. ".repeat(40)),
            format!("{{\"job_id\":\"{job}\",\"status\":\"completed\",\"result\":\"42\"}}"),
            format!("{{\"job_id\":\"{job}\",\"status\":\"running\",\"result\":\"so far\"}}"),
            "{\"status\":\"queued\"}".to_owned(),
            format!("Job ID: {job}"),
            "Waiting.".to_owned(),
            "Started.".to_owned(),
            "Job gestartet, ich warte.".to_owned(),
        ] {
            assert!(!is_announcement(&text), "{text}");
        }
    }

    #[test]
    fn this_source_file_is_no_announcement_line_by_line_or_in_pieces() {
        let source = include_str!("notice.rs");
        let lines: Vec<&str> = source.lines().collect();
        for size in [1, 2, 3, 5] {
            for piece in lines.chunks(size) {
                let text = piece.join("\n");
                // The table above has these bare texts.
                assert!(!is_announcement(&text), "{text}");
            }
        }
    }
}
