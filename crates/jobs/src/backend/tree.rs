//! The descendants of a program. Agents run their commands in their own process groups, which a
//! signal to the program's group does not reach.

use baton_core::process::Process;
use baton_machine::process;
use rustix::process::{Pid, Signal};

/// The present descendants of a process.
pub fn below(root: Process) -> Vec<Process> {
    let all = process::all();
    let mut found: Vec<Process> = Vec::new();
    let mut next = vec![root.pid];
    while let Some(above) = next.pop() {
        let children = all.iter().filter(|(_, parent)| *parent == above).map(|(process, _)| *process);
        let new: Vec<Process> = children.filter(|process| !found.contains(process)).collect();
        next.extend(new.iter().map(|process| process.pid));
        found.extend(new);
    }
    found
}

/// Ends those that still run, each only if its number was not used again.
pub fn kill(processes: &[Process]) {
    for process in processes.iter().filter(|process| process::is_alive(**process)) {
        if let Some(pid) = Pid::from_raw(process.pid) {
            // An error means that it is gone already.
            rustix::process::kill_process(pid, Signal::KILL).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

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
