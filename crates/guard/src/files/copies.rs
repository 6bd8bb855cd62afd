//! Commands that copy, delete or look for files.

use super::arrivals::Way;
use super::*;
use crate::shell::{found_below, is_filtered, names_found};

impl Finder<'_> {
    pub(super) fn search(&mut self, command: &Command) {
        let name = command.name.as_str();
        let args = command.args();
        let is_grep = !matches!(name, "sed" | "gsed" | "awk" | "gawk" | "mawk" | "nawk" | "jq" | "yq" | "sd");
        let valued: &[&str] = if is_grep {
            &[
                "-e",
                "-f",
                "-m",
                "-A",
                "-B",
                "-C",
                "-d",
                "-D",
                "--regexp",
                "--file",
                "-g",
                "-t",
                "-T",
                "--glob",
                "--type",
                "--include",
                "--exclude",
                "--exclude-dir",
                "-j",
                "--max-count",
                "-E",
                "-M",
            ]
        } else if name.contains("awk") {
            &["-f", "-v", "-F", "--file", "--assign"]
        } else if name.contains("sed") {
            &["-e", "-f", "--expression", "--file", "-l"]
        } else {
            &["--arg", "--argjson", "-f", "--from-file", "--slurpfile", "--rawfile", "--indent"]
        };
        // grep's `-E` takes no value; ripgrep's does.
        let valued: Vec<&str> = valued
            .iter()
            .copied()
            .filter(|option| name == "rg" || !matches!(*option, "-E" | "-M" | "-g" | "-t" | "-T" | "-j"))
            .collect();
        let given = args.iter().any(|arg| {
            matches!(
                arg.text.as_str(),
                "-e" | "-f" | "--regexp" | "--file" | "--expression" | "--from-file" | "--files"
            ) || arg.text.starts_with("--regexp=")
                || arg.text.starts_with("--file=")
                || arg.text.starts_with("--expression=")
                || (arg.text.len() > 2
                    && (arg.text.starts_with("-e") || (arg.text.starts_with("-f") && !is_grep)))
                || (is_grep
                    && arg.text.len() > 2
                    && !arg.text.starts_with("--")
                    && arg.text.starts_with('-')
                    && arg.text.ends_with(['e', 'f'])
                    && !arg.text.contains('='))
        });
        let found = operands(args, &valued);
        let files = if given { &found[..] } else { found.get(1..).unwrap_or(&[]) };
        let in_place = name.contains("sed") && (command.has_short("i") || command.has_long("--in-place", 4))
            || name.contains("awk") && args.iter().any(|arg| arg.text == "inplace")
            || name == "yq" && command.has_short("i")
            || name == "sd";
        for file in files {
            if name.contains("awk") && file.text.contains('=') && !file.text.contains('/') {
                continue;
            }
            self.touch(if in_place { Deed::Write } else { Deed::Read }, file, command);
        }
        self.option_files(command, &["-f", "--file", "--from-file"], Deed::Read);
        let recursive = is_grep
            && (matches!(name, "rg" | "ag" | "ack" | "ugrep")
                || command.has_short("rR")
                || command.has_long("--recursive", 5));
        if is_grep {
            let here = Value::known(".");
            let roots = if files.is_empty() { vec![&here] } else { files.to_vec() };
            for glob in searched_names(args) {
                for root in roots.iter().take(16) {
                    in_braces(&glob).iter().for_each(|glob| self.searched(Deed::Read, root, glob, command));
                }
            }
        }
        if files.is_empty() && recursive && command.stdin.is_none() {
            self.touch(Deed::List, &Value::known("."), command);
        }
    }

    pub(super) fn copy(&mut self, command: &Command, source: Deed) {
        let args = command.args();
        let name = command.name.as_str();
        let folder = target_folder(command);
        let valued: &[&str] = if name == "rsync" {
            &["-e", "--rsh", "--exclude", "--include", "-f"]
        } else {
            &["-t", "--target-directory", "-m", "-o", "-g", "-S", "--suffix", "-i", "-P"]
        };
        let found = operands(args, valued);
        let here = Value::known(".");
        let is_remote = |word: &Value| {
            matches!(name, "scp" | "rsync")
                && word.text.split('/').next().is_some_and(|head| head.contains(':'))
        };
        let (sources, target) = match (&folder, found.split_last()) {
            (Some(_), _) => (&found[..], folder.as_ref()),
            (None, Some((last, []))) if name == "ln" => (std::slice::from_ref(last), Some(&here)),
            (None, Some((last, rest))) if !rest.is_empty() => (rest, Some(*last)),
            (None, _) => (&found[..], None),
        };
        for word in sources.iter().filter(|word| !is_remote(word)) {
            // A link reads nothing. But what is reached through it is known by its target.
            self.touch(
                if name == "install" && command.has_short("d") { Deed::Write } else { source },
                word,
                command,
            );
            if source == Deed::Delete {
                self.touch(Deed::Read, word, command);
            }
        }
        if let Some(target) = target.filter(|word| !is_remote(word)) {
            let deletes = name == "rsync" && args.iter().any(|arg| arg.text.starts_with("--del"));
            let empties = sources.iter().any(|word| word.text == "/dev/null")
                && matches!(name, "cp" | "install" | "gcp");
            let deed = match (deletes, empties) {
                (true, _) => Deed::DeleteTree,
                (_, true) => Deed::Truncate,
                _ => Deed::Write,
            };
            self.touch(deed, target, command);
            let is_gnu = matches!(name, "cp" | "gcp" | "mv" | "gmv" | "ln" | "install");
            let way = Way {
                into_folder: folder.is_some() || sources.len() > 1,
                is_content: is_gnu
                    && (command.has_short("T") || command.has_long("--no-target-directory", 6)),
                with_folders: is_gnu && command.has_long("--parents", 5)
                    || name == "rsync" && command.has_short("R"),
                is_remote: false,
            };
            for source in sources.iter().filter(|source| Some(**source) != folder.as_ref()).take(256) {
                self.arrives(source, target, Way { is_remote: is_remote(source), ..way }, command);
            }
        }
    }

    pub(super) fn delete(&mut self, command: &Command) {
        let name = command.name.as_str();
        let lower: Vec<String> = command.texts().map(str::to_ascii_lowercase).collect();
        let is_windows = matches!(name, "Remove-Item" | "ri" | "del" | "erase" | "rd")
            || (name == "rmdir" && lower.iter().any(|arg| arg == "/s"));
        if is_windows {
            let tree = lower.iter().any(|arg| {
                arg == "/s"
                    || arg == "-r"
                    || (arg.len() >= 4 && "-recurse".starts_with(arg.as_str()))
                    || arg == "-rf"
                    || arg == "-fr"
            });
            for word in command.args() {
                let text = word.text.as_str();
                let is_switch = text.starts_with('-')
                    || (text.starts_with('/') && text.len() <= 3 && !text.contains("//") && text.len() > 1);
                // A shell has eaten the backslash of `C:\\Windows`.
                let mut word = word.clone();
                if path::is_drive(text.get(..2).unwrap_or("")) && !path::is_drive(text) {
                    word.text.insert(2, '/');
                }
                if !is_switch {
                    let word = &word;
                    self.touch(if tree { Deed::DeleteTree } else { Deed::Delete }, word, command);
                }
            }
            return;
        }
        let tree = matches!(name, "trash" | "trash-put" | "rimraf" | "del-cli" | "wipe" | "srm")
            || (name != "shred" && (command.has_short("rR") || command.has_long("--recursive", 5)))
            || (command.has_long("--no-preserve-root", 6));
        let deed = match name {
            "shred" => Deed::Truncate,
            _ if tree => Deed::DeleteTree,
            _ => Deed::Delete,
        };
        let plain = operands(
            command.args(),
            if name == "shred" { &["-n", "-s", "--iterations", "--size"] } else { &[] },
        );
        self.touch_all(deed, &plain, command);
    }

    pub(super) fn find(&mut self, command: &Command) {
        let args = command.args();
        let roots: Vec<&Value> = if matches!(command.name.as_str(), "fd" | "fdfind") {
            operands(args, &["-e", "-t", "-E", "-d", "-x", "-X"]).into_iter().skip(1).collect()
        } else {
            args.iter()
                .skip_while(|arg| matches!(arg.text.as_str(), "-H" | "-L" | "-P"))
                .take_while(|arg| !arg.text.starts_with('-') && arg.text != "(" && arg.text != "!")
                .collect()
        };
        let here = Value::known(".");
        let roots = if roots.is_empty() { vec![&here] } else { roots };
        let deletes = args.iter().any(|arg| arg.text == "-delete");
        self.touch_all(Deed::List, &roots, command);
        if deletes {
            const NAMES: &[&str] = &[
                "-name",
                "-iname",
                "-path",
                "-ipath",
                "-wholename",
                "-regex",
                "-iregex",
                "-empty",
                "-mtime",
                "-mmin",
                "-size",
                "-newer",
                "-atime",
                "-ctime",
                "-lname",
                "-perm",
                "-samefile",
            ];
            let filtered = is_filtered(args, NAMES);
            let names = names_found(args);
            for root in roots {
                for name in &names {
                    self.touch(Deed::DeleteTree, &found_below(root, name), command);
                }
                let mut word = root.clone();
                if filtered && !word.is_opaque() {
                    word.push_text("/");
                    word.push(&Value::unknown(Origin::Output("find".into())));
                }
                if names.is_empty() {
                    self.touch(Deed::DeleteTree, &word, command);
                }
            }
        }
        for (number, arg) in args.iter().enumerate() {
            if matches!(arg.text.as_str(), "-fprint" | "-fprintf" | "-fls" | "-fprint0")
                && let Some(file) = args.get(number + 1)
            {
                self.touch(Deed::Truncate, file, command);
            }
        }
    }
}

/// The folder that `-t` names: alone, attached or at the end of a cluster. rsync's `-t` means
/// something else.
fn target_folder(command: &Command) -> Option<Value> {
    let args = command.args();
    if matches!(command.name.as_str(), "rsync" | "scp") {
        return None;
    }
    args.iter().enumerate().find_map(|(number, arg)| {
        let text = arg.text.as_str();
        let is_long = text.len() > 3 && "--target-directory".starts_with(text);
        let flags = text.strip_prefix('-').filter(|flags| !flags.starts_with('-'));
        let is_short = flags.is_some_and(|flags| {
            flags.ends_with('t') && flags.bytes().all(|flag| flag.is_ascii_alphabetic()) && flags.len() < 8
        });
        if is_long || is_short {
            return args.get(number + 1).cloned();
        }
        let long = || {
            arg.split_at_sign('=').filter(|(option, _)| {
                option.text.len() > 3 && "--target-directory".starts_with(option.text.as_str())
            })
        };
        arg.after("-t").filter(|folder| !folder.text.is_empty()).or_else(|| long().map(|(_, folder)| folder))
    })
}

/// The names of the files that a search reads.
fn searched_names(args: &[Value]) -> Vec<String> {
    const OPTIONS: &[&str] = &["-g", "--glob", "--iglob", "--include"];
    let mut names = Vec::new();
    for (number, arg) in args.iter().enumerate() {
        if OPTIONS.contains(&arg.text.as_str()) {
            names.extend(args.get(number + 1).map(|name| name.text.clone()));
        } else {
            let glued = OPTIONS.iter().find_map(|option| {
                let rest = arg.text.strip_prefix(option)?;
                if option.starts_with("--") { rest.strip_prefix('=') } else { Some(rest) }
            });
            names.extend(glued.filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    names.truncate(16);
    names
}
