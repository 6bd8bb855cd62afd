//! Everything at once, at random: sends, turns, killed and doubled hooks, late transcripts, Esc,
//! clears, compactions, killed agents.
//!
//! The same play as the model in `crates/core/tests/interleavings.rs`, with real processes and
//! files. Each round has a seed that a failure names; `BATON_ROUNDS` says how many, `BATON_SEED`
//! where to start.

use crate::paper::heard;
use crate::puppet::{Moment, Printed, Puppet, Style};
use crate::world::{World, rounds};
use serde_json::json;
use std::collections::HashMap;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

/// A small generator: the same seed, the same play.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % sides
    }

    pub fn happens(&mut self, percent: u64) -> bool {
        self.roll(100) < percent
    }
}

struct Play<'w> {
    dice: Dice,
    puppet: Puppet<'w>,
    senders: Vec<Puppet<'w>>,
    sent: u32,
    log: Vec<String>,
}

impl Play<'_> {
    fn note(&mut self, what: impl Into<String>) {
        self.log.push(what.into());
    }

    fn send(&mut self) {
        for _ in 0..self.dice.roll(3) {
            let from = self.dice.roll(self.senders.len() as u64) as usize;
            self.sent += 1;
            let body = format!("{} {}", self.senders[from].name, self.sent);
            let message = self.senders[from].send("reader", &body);
            self.note(format!("sent {message}: {body}"));
        }
    }

    /// The agent writes some of what it has not written.
    fn flush(&mut self) {
        let count = self.dice.roll(8) as usize;
        self.puppet.paper.flush_some(if self.dice.happens(60) { usize::MAX } else { count });
        let length = self.puppet.paper.length();
        self.note(format!("  transcript of {length} bytes"));
    }

    /// One hook, which may be killed, or run twice at once.
    fn hook(&mut self, payload: &[u8]) -> Vec<Printed> {
        if self.dice.happens(20) {
            let mut command = self.puppet.hook_command();
            let mut child =
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            // Killed before it read its input, it breaks the pipe.
            child.stdin.take().unwrap().write_all(payload).ok();
            std::thread::sleep(Duration::from_micros(self.dice.roll(9000)));
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            self.note(format!("  killed; printed {} bytes", text.len()));
            return vec![Printed { text, killed: !output.status.success() }];
        }
        let mut printed = vec![self.puppet.hook(payload)];
        if self.dice.happens(10) {
            printed.push(self.puppet.hook(payload));
        }
        self.note(format!(
            "  printed {:?}",
            printed.iter().map(|printed| printed.text.len()).collect::<Vec<_>>()
        ));
        printed
    }

    fn event(&mut self, moment: Moment) -> bool {
        self.note(format!("{moment:?}"));
        self.flush();
        if moment == Moment::Tools && (self.puppet.streaming || self.puppet.code_mode) {
            let mut puppet = self.puppet.clone();
            puppet.tools_one_by_one(&mut |_, payload| self.hook(payload));
            self.puppet = puppet;
            (self.puppet.streaming, self.puppet.code_mode) = (false, false);
            self.send();
            return true;
        }
        let payloads = self.puppet.open(moment);
        self.flush();
        let printed: Vec<Printed> = payloads.iter().flat_map(|payload| self.hook(payload)).collect();
        let goes_on = self.puppet.close(moment, &printed);
        self.send();
        goes_on
    }

    fn turn(&mut self) {
        self.event(Moment::Prompt);
        if self.dice.happens(15) {
            self.note("escape");
            self.puppet.escape();
            return;
        }
        for _ in 0..self.dice.roll(3) {
            let tools = 1 + self.dice.roll(3) as usize;
            if self.puppet.style == Style::Codex {
                self.puppet.code_mode = self.dice.happens(30);
                self.puppet.streaming = !self.puppet.code_mode && self.dice.happens(50);
            }
            self.puppet.answer(tools);
            if self.puppet.style == Style::Claude && self.dice.happens(15) {
                self.note("a prompt typed ahead");
                // A person needs longer to type than the agent to write.
                self.puppet.paper.flush();
                self.puppet.quiet_hook("UserPromptSubmit", json!({"prompt": "and also"}));
            }
            self.event(Moment::Tools);
        }
        loop {
            self.puppet.answer(0);
            if !self.event(Moment::Stop) {
                return;
            }
        }
    }

    fn step(&mut self) {
        match self.dice.roll(14) {
            0 => {
                self.note("clear");
                self.puppet.clear();
            }
            1 => {
                self.note("kill and resume");
                self.flush();
                self.puppet.kill();
                self.puppet.resume();
            }
            2 => {
                self.note("compact");
                self.puppet.paper.flush();
                self.puppet.quiet_hook("PreCompact", json!({"trigger": "auto"}));
                self.puppet.paper.compacted();
                let printed = self.puppet.session_start("compact");
                assert_eq!(printed.text, "", "no ask is open, and a compaction brings no mail");
            }
            3 => self.send(),
            4 if self.puppet.style == Style::Claude && self.puppet.paper.prompts() > 0 => {
                let back = self.dice.roll(self.puppet.paper.prompts().min(3) as u64) as usize;
                self.note(format!("rewind by {} prompts", back + 1));
                self.puppet.paper.rewind(self.puppet.paper.prompts() - 1 - back);
            }
            5 => {
                self.note("resume in another terminal");
                self.puppet.paper.flush();
                self.puppet.move_on();
            }
            _ => self.turn(),
        }
    }
}

fn round(style: Style, seed: u64) {
    let world = World::talkative();
    let senders =
        vec![Puppet::start(&world, Style::Claude, "ada"), Puppet::start(&world, Style::Codex, "lin")];
    let puppet = Puppet::start_in_process(&world, style, "reader");
    let mut play = Play {
        dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        puppet,
        senders,
        sent: 0,
        log: Vec::new(),
    };
    play.puppet.interactive = play.dice.happens(50);
    for _ in 0..12 {
        play.step();
    }
    // Then peace.
    for _ in 0..4 {
        play.puppet.turn_in_peace();
    }
    let mail = world.mail();
    let heard = heard(&world);
    let log = || {
        let lines = baton_testkit::transcript::lines(&play.puppet.paper.file);
        let lines: Vec<String> =
            lines.iter().map(|line| line.to_string().chars().take(400).collect()).collect();
        format!("BATON_SEED={seed} {style:?}\n{}\nheard {heard:?}\n{}", play.log.join("\n"), lines.join("\n"))
    };
    let bodies: HashMap<&str, &str> =
        mail.iter().map(|row| (row["message_id"].as_str().unwrap(), row["body"].as_str().unwrap())).collect();
    assert_eq!(mail.len(), play.sent as usize);
    for row in &mail {
        assert_eq!(row["deliveries"][0]["state"], "seen", "{}", log());
        let times = heard.iter().filter(|id| row["message_id"] == id.as_str()).count();
        assert_eq!(times, 1, "{} was heard {times} times\n{}", row["message_id"], log());
    }
    for sender in &play.senders {
        let numbers: Vec<u32> = heard
            .iter()
            .filter_map(|id| bodies[id.as_str()].strip_prefix(&format!("{} ", sender.name))?.parse().ok())
            .collect();
        // Sessions are separate transcripts, which are read one after the other.
        assert!(numbers.is_sorted(), "{}: {numbers:?}\n{}", sender.name, log());
    }
}

fn rounds_of(style: Style) {
    let first: u64 = std::env::var("BATON_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    for seed in first..first + rounds(6) as u64 {
        round(style, seed);
    }
}

#[test]
fn m2_whatever_happens_to_claude_code_it_hears_each_message_once_and_in_order() {
    rounds_of(Style::Claude);
}

#[test]
fn m2_whatever_happens_to_codex_it_hears_each_message_once_and_in_order() {
    rounds_of(Style::Codex);
}
