//! The processes below a program of ours: agents run their commands in groups of their own, which a signal to the program's group does not reach.

use baton_mail::process;
use baton_store::Process;
use rustix::process::{Pid, Signal};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// The processes below one, as they are now.
pub fn below(root: Process) -> Vec<Process> {
    let parents = parents();
    let mut found = Vec::new();
    let mut next = vec![root.pid];
    while let Some(parent) = next.pop() {
        for (&pid, _) in parents.iter().filter(|(_, of)| **of == parent) {
            if let Some(process) =
                process::find(pid).filter(|_| !found.iter().any(|p: &Process| p.pid == pid))
            {
                found.push(process);
                next.push(pid);
            }
        }
    }
    found
}

/// Ends those that are still the ones they were.
pub fn kill(processes: &[Process]) {
    for process in processes.iter().filter(|process| process::is_alive(**process)) {
        if let Some(pid) = Pid::from_raw(process.pid) {
            // Gone already is what we want.
            rustix::process::kill_process(pid, Signal::KILL).ok();
        }
    }
}

/// Every process with the one above it.
fn parents() -> BTreeMap<i32, i32> {
    match fs::read_dir("/proc") {
        Ok(entries) => {
            let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
            pids.filter_map(|pid| {
                Some((pid, parent(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))
            })
            .collect()
        }
        Err(_) => by_ps().unwrap_or_default(),
    }
}

/// The second field behind the name, which may hold anything.
fn parent(stat: &str) -> Option<i32> {
    stat.rsplit_once(") ")?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Where there is no `/proc`.
fn by_ps() -> Option<BTreeMap<i32, i32>> {
    let listed = Command::new("ps").args(["-axo", "pid=,ppid="]).output().ok()?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let row = |line: &str| {
        let (pid, parent) = line.trim().split_once(char::is_whitespace)?;
        Some((pid.parse().ok()?, parent.trim().parse().ok()?))
    };
    Some(text.lines().filter_map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::CommandExt as _;
    use std::process::Stdio;

    #[test]
    fn processes_in_other_groups_are_found_and_ended() {
        let mut shell = Command::new("sh")
            .args(["-c", "sh -mc 'sleep 600 & echo $!; wait'; true"])
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let sleeper = line.trim().parse().unwrap();
        let root = process::find(shell.id().cast_signed()).unwrap();
        let found = below(root);
        assert!(found.iter().any(|process| process.pid == sleeper), "{found:?}");
        assert!(!found.contains(&root));
        kill(&found);
        shell.wait().unwrap();
        let gone = || process::find(sleeper).is_none_or(|process| !process::is_alive(process));
        assert!(baton_testkit::wait::until(std::time::Duration::from_secs(5), gone));
    }
}
