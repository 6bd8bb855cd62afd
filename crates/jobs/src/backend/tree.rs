//! The processes below a program of ours: agents run their commands in groups of their own, which a signal to the program's group does not reach.

use baton_mail::process;
use baton_store::Process;
use rustix::process::{Pid, Signal};

/// The processes below one, as they are now.
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

/// Ends those that are still the ones they were.
pub fn kill(processes: &[Process]) {
    for process in processes.iter().filter(|process| process::is_alive(**process)) {
        if let Some(pid) = Pid::from_raw(process.pid) {
            // Gone already is what we want.
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
