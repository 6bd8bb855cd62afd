//! A test body in its own network (and, where allowed, process) namespace.
//!
//! The agents must not reach anything but the scripted model. Model and agents are in one
//! namespace, so the model needs no relay: the test runs itself again, alone, under `unshare`, with
//! loopback as its only interface. With a process namespace too, nothing that the test started can
//! outlive it. If `unshare` is not allowed, the body runs directly, and says so: then only the fake
//! keys and the loopback base URL protect the network.

use std::any::type_name;
use std::env;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use crate::process::Running;

/// Set in the process that runs inside the namespace.
const INSIDE_VARIABLE: &str = "BATON_TESTKIT_ISOLATED";

/// No single test takes longer. Bodies have tighter limits of their own.
const TEST_LIMIT: Duration = Duration::from_secs(300);
/// And so much more for each round that `BATON_ROUNDS` asks for.
const ROUND_LIMIT: Duration = Duration::from_secs(60);

/// Ways to isolate, best first. The shell stays as the parent, so that orphans are reaped.
const WAYS: [&[&str]; 2] = [
    &["--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"],
    &["--map-root-user", "--net"],
];

/// Brings loopback up, then runs the arguments.
const INIT: &str = "ip link set lo up 2>/dev/null || ifconfig lo up || exit 97\n\"$0\" \"$@\"";

/// Runs the body of a `#[test]` isolated from the network.
///
/// Call it as the only statement of the test, with the body as a closure written there: the test is
/// found again by the closure's path.
#[track_caller]
pub fn isolated<F: FnOnce()>(body: F) {
    if env::var_os(INSIDE_VARIABLE).is_some() {
        return body();
    }
    match way() {
        Ok(flags) => run_again(flags, test_name(type_name::<F>())),
        Err(reason) => {
            eprintln!("not isolated from the network: {reason}");
            body();
        }
    }
}

/// The first way that works here, found once.
fn way() -> Result<&'static [&'static str], String> {
    static WAY: OnceLock<Result<&'static [&'static str], String>> = OnceLock::new();
    WAY.get_or_init(|| {
        let mut reason = String::new();
        for flags in WAYS {
            let attempt = Command::new("unshare")
                .args(flags)
                .args(["sh", "-c", INIT, "true"])
                .stdin(Stdio::null())
                .output();
            match attempt {
                Ok(output) if output.status.success() => return Ok(flags),
                Ok(output) => reason = String::from_utf8_lossy(&output.stderr).trim().to_owned(),
                Err(error) => reason = format!("unshare: {error}"),
            }
        }
        Err(reason)
    })
    .clone()
}

/// `crate::module::test::{{closure}}` as the test harness names it: `module::test`.
fn test_name(closure: &'static str) -> &'static str {
    let function = closure.trim_end_matches("::{{closure}}");
    function.split_once("::").map_or(function, |(_, name)| name)
}

#[track_caller]
fn run_again(flags: &[&str], test: &str) {
    let exe = env::current_exe().expect("the path of the running test");
    let output = tempfile::tempdir().expect("a folder for the output");
    let mut command = Command::new("unshare");
    command.args(flags).args(["sh", "-c", INIT]).arg(exe);
    command
        .args(["--exact", test, "--nocapture", "--include-ignored", "--test-threads=1"])
        .env(INSIDE_VARIABLE, "1");
    let rounds = std::env::var("BATON_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(0);
    let limit = TEST_LIMIT + ROUND_LIMIT * rounds;
    let run = Running::start(&mut command, &output.path().join("test")).expect("start unshare").finish(limit);
    print!("{}", run.stdout);
    eprint!("{}", run.stderr);
    assert!(
        run.stdout.contains("running 1 test"),
        "`{test}` is not the path of a test: call isolated() in it"
    );
    assert!(run.status.success(), "`{test}` failed in its namespace ({}), see above", run.status);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn an_isolated_body_sees_loopback_only() {
        isolated(|| {
            if env::var_os(INSIDE_VARIABLE).is_none() {
                return;
            }
            let devices = fs::read_to_string("/proc/net/dev").unwrap();
            let names: Vec<_> = devices
                .lines()
                .filter_map(|line| line.split_once(':'))
                .map(|(name, _)| name.trim())
                .collect();
            assert_eq!(names, ["lo"]);
            std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        });
    }

    #[test]
    #[should_panic(expected = "failed in its namespace")]
    fn a_failure_inside_is_a_failure_outside() {
        match way() {
            Ok(flags) => run_again(flags, "isolation::tests::fails"),
            Err(reason) => panic!("failed in its namespace, which {reason}"),
        }
    }

    #[test]
    #[ignore = "fails, for the test above"]
    fn fails() {
        panic!("on purpose");
    }
}
