//! The processes that stand for agents: one that is only there, and one that runs hooks below
//! itself.

use crate::world::{Done, World, quoted};
use baton_testkit::process::write_program;
use baton_testkit::{Running, wait};
use std::cell::{Cell, RefCell};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

thread_local!(static STARTED: Cell<u32> = const { Cell::new(0) });

/// A path for what the next process writes.
fn next_log(world: &World, what: &str) -> PathBuf {
    let number = STARTED.replace(STARTED.get() + 1);
    world.path("log").join(format!("{what}-{number}-{:?}", std::thread::current().id()))
}

/// A process that does nothing but be there.
pub fn agent_process(world: &World) -> Rc<Running> {
    let mut sleep = world.command("sleep");
    let running = Running::start(sleep.arg("600"), &next_log(world, "agent")).expect("sleep starts");
    Rc::new(running)
}

/// A program with an agent's name that runs the commands it is given, one after the other.
pub struct Shepherd {
    child: RefCell<Child>,
    orders: RefCell<ChildStdin>,
    folder: PathBuf,
    count: Cell<u32>,
}

impl Shepherd {
    pub fn start(world: &World, name: &str) -> Shepherd {
        let program = world.path("bin").join(name);
        if !program.exists() {
            // Renamed into place: another one may be running it.
            let draft = next_log(world, name);
            write_program(&draft, b"#!/bin/sh\nwhile read -r order; do sh \"$order\"; done\n");
            fs::rename(&draft, &program).expect("a program");
        }
        let mut command = world.command(&program);
        Self::of(world, command.stdout(Stdio::null()))
    }

    /// Any program that takes orders like this.
    pub fn of(world: &World, command: &mut Command) -> Shepherd {
        let folder = next_log(world, "orders");
        fs::create_dir_all(&folder).expect("a folder");
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        let orders = child.stdin.take().expect("a pipe");
        Shepherd { child: RefCell::new(child), orders: RefCell::new(orders), folder, count: Cell::new(0) }
    }

    pub fn pid(&self) -> u32 {
        self.child.borrow().id()
    }

    /// Runs a command below this process.
    pub fn run(&self, command: &Command, input: &[u8]) -> Done {
        let number = self.count.replace(self.count.get() + 1);
        let path = |what: &str| self.folder.join(format!("{number}.{what}"));
        fs::write(path("in"), input).expect("its input");
        let mut words = vec!["env".to_owned(), "-i".to_owned()];
        for (name, value) in command.get_envs().filter_map(|(name, value)| Some((name, value?))) {
            words.push(quoted(&format!("{}={}", name.to_string_lossy(), value.to_string_lossy())));
        }
        words.push(quoted(&command.get_program().to_string_lossy()));
        words.extend(command.get_args().map(|word| quoted(&word.to_string_lossy())));
        let file = |what: &str| quoted(&path(what).display().to_string());
        let order = format!(
            "{} < {} > {} 2> {}\necho $? > {}\nmv {} {}\n",
            words.join(" "),
            file("in"),
            file("out"),
            file("err"),
            file("code"),
            file("code"),
            file("done")
        );
        fs::write(path("sh"), order).expect("an order");
        writeln!(self.orders.borrow_mut(), "{}", path("sh").display()).expect("it listens");
        let code = wait::poll(Duration::from_secs(30), || fs::read_to_string(path("done")).ok());
        let text = |what: &str| fs::read_to_string(path(what)).unwrap_or_default();
        Done {
            code: code.and_then(|code| code.trim().parse().ok()),
            stdout: text("out"),
            stderr: text("err"),
        }
    }
}

impl Drop for Shepherd {
    fn drop(&mut self) {
        let mut child = self.child.borrow_mut();
        // It may have ended by itself.
        child.kill().ok();
        child.wait().ok();
    }
}
