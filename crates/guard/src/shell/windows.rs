//! PowerShell and cmd: words and pipes only. There is no grammar, only quotes, separators and the
//! aliases that matter.

use super::eval::{Context, Shell};
use super::value::{Origin, Value};
use crate::World;
use crate::secrets;
use std::rc::Rc;

/// What a PowerShell text would do.
pub fn analyse_powershell(text: &str, world: &dyn World) -> super::Analysis {
    let mut shell = Shell::new(world);
    powershell(&mut shell, text, &Context::default());
    shell.finish()
}

/// What a text for cmd would do.
pub fn analyse_cmd(text: &str, world: &dyn World) -> super::Analysis {
    let mut shell = Shell::new(world);
    cmd(&mut shell, text, &Context::default());
    shell.finish()
}

/// Runs `powershell -Command …` and similar calls.
pub(super) fn powershell_program(shell: &mut Shell<'_>, args: &[Value], context: &Context) {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let flag = arg.text.to_ascii_lowercase();
        at += 1;
        if matches!(flag.as_str(), "-c" | "-command" | "/c" | "-cwa" | "-commandwithargs") {
            let words: Vec<&str> = args.iter().skip(at).map(|arg| arg.text.as_str()).collect();
            powershell(shell, &words.join(" "), &context.deeper());
            if args.iter().skip(at).any(Value::is_download) {
                shell.ran(Origin::Download, "powershell", context);
            }
            return;
        }
        if flag.starts_with("-e") && "-encodedcommand".starts_with(&flag) && flag.len() > 1 {
            shell.ran(Origin::Decoded, "powershell", context);
            return;
        }
        if matches!(flag.as_str(), "-file" | "-f") {
            return;
        }
        if matches!(
            flag.as_str(),
            "-executionpolicy"
                | "-ep"
                | "-ex"
                | "-windowstyle"
                | "-w"
                | "-version"
                | "-inputformat"
                | "-outputformat"
                | "-workingdirectory"
        ) {
            at += 1;
            continue;
        }
        if !flag.starts_with('-') {
            let words: Vec<&str> = args.iter().skip(at - 1).map(|arg| arg.text.as_str()).collect();
            powershell(shell, &words.join(" "), &context.deeper());
            return;
        }
    }
    if let Some(stdin) = context.stdin.as_deref() {
        if stdin.is_download() {
            shell.ran(Origin::Download, "powershell", context);
        } else if stdin.is_known() {
            let text = stdin.text.clone();
            powershell(shell, &text, &context.deeper());
        }
    }
}

pub(super) fn powershell(shell: &mut Shell<'_>, text: &str, context: &Context) {
    if runs_download(text) {
        shell.ran(Origin::Download, "powershell", context);
    }
    lines(shell, text, context, '`', true);
}

/// `iex (irm x)`, `iex ((New-Object Net.WebClient).DownloadString('x'))`, `&
/// ([scriptblock]::Create((irm x)))`.
fn runs_download(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let has = |names: &[&str]| {
        lower
            .split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '-'))
            .any(|word| names.contains(&word))
    };
    let fetches = has(&[
        "irm",
        "iwr",
        "invoke-restmethod",
        "invoke-webrequest",
        "curl",
        "wget",
        "downloadstring",
        "downloaddata",
        "start-bitstransfer",
    ]);
    fetches && has(&["iex", "invoke-expression", "scriptblock", "invoke-command", "icm"])
}

/// Runs a text for cmd.
pub(super) fn cmd(shell: &mut Shell<'_>, text: &str, context: &Context) {
    lines(shell, text, context, '^', false);
}

fn lines(shell: &mut Shell<'_>, text: &str, context: &Context, escape: char, is_powershell: bool) {
    if !shell.step(text.len() / 4 + 1) || context.depth > super::parse::MAX_DEPTH {
        shell.unknown("the command is nested too deeply to be read", context);
        return;
    }
    let mut words: Vec<Value> = Vec::new();
    let mut word = Value::default();
    let mut started = false;
    let mut stdin: Option<Rc<Value>> = None;
    let mut signs = text.char_indices().peekable();
    let mut quote: Option<char> = None;
    // Runs the words that were read. If their output is piped on, it becomes the next input.
    let flush =
        |shell: &mut Shell<'_>, words: &mut Vec<Value>, stdin: &mut Option<Rc<Value>>, piped: bool| {
            if words.is_empty() {
                return;
            }
            let mut argv = canonical(std::mem::take(words), is_powershell);
            for word in argv.iter_mut().skip(1) {
                expand_home(shell, word);
            }
            let inner = Context { stdin: stdin.take(), wants_output: piped, ..context.deeper() };
            let printed = shell.run(argv, Vec::new(), Vec::new(), &inner);
            if piped {
                *stdin = Some(Rc::new(printed));
            }
        };
    while let Some((at, sign)) = signs.next() {
        if let Some(open) = quote {
            if sign == open {
                quote = None;
            } else if sign == '$' && open == '"' && is_powershell {
                variable(text, at, &mut signs, &mut word);
            } else {
                word.text.push(sign);
            }
            continue;
        }
        match sign {
            '"' | '\'' if sign == '"' || is_powershell => {
                quote = Some(sign);
                started = true;
            }
            sign if sign == escape => {
                if let Some((_, next)) = signs.next()
                    && next != '\n'
                {
                    word.text.push(next);
                    started = true;
                }
            }
            '$' if is_powershell => {
                started = true;
                variable(text, at, &mut signs, &mut word);
            }
            '%' if !is_powershell => started |= percent_variable(text, at, &mut signs, &mut word),
            '#' if is_powershell && !started => while signs.next_if(|(_, sign)| *sign != '\n').is_some() {},
            ' ' | '\t' | '\r' => {
                if started {
                    words.push(std::mem::take(&mut word));
                    started = false;
                }
            }
            '|' | ';' | '&' | '\n' | '{' | '}' | '(' | ')' => {
                if started {
                    words.push(std::mem::take(&mut word));
                    started = false;
                }
                let next = signs.peek().map(|(_, sign)| *sign);
                // `&` calls what follows in PowerShell.
                let is_call = sign == '&' && is_powershell && words.is_empty() && next != Some('&');
                if !is_call {
                    let piped = sign == '|' && next != Some('|');
                    flush(shell, &mut words, &mut stdin, piped);
                    if !piped {
                        stdin = None;
                    }
                }
                signs.next_if(|(_, other)| *other == sign && matches!(sign, '|' | '&'));
            }
            sign => {
                word.text.push(sign);
                started = true;
            }
        }
    }
    if quote.is_some() {
        shell.unknown("the command can't be parsed (a quote is not closed)", context);
    }
    if started {
        words.push(word);
    }
    flush(shell, &mut words, &mut stdin, false);
}

/// `%NAME%`, as cmd writes a variable. False if the sign is only itself.
fn percent_variable(
    text: &str,
    at: usize,
    signs: &mut std::iter::Peekable<std::str::CharIndices<'_>>,
    word: &mut Value,
) -> bool {
    let rest = text.get(at + 1..).unwrap_or("");
    let is_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let name = rest.find('%').and_then(|end| rest.get(..end));
    let Some(name) = name.filter(|name| !name.is_empty() && name.chars().all(is_name)) else {
        word.text.push('%');
        return false;
    };
    let name: Rc<str> = Rc::from(name);
    word.holes.push((word.text.len(), Origin::Variable(Rc::clone(&name))));
    word.note_variable(&name);
    for _ in 0..=name.len() {
        signs.next();
    }
    true
}

/// `~`, `$HOME`, `$env:USERPROFILE`, `%USERPROFILE%` at the start of a word.
fn expand_home(shell: &Shell<'_>, word: &mut Value) {
    let names_home = matches!(
        word.holes.first(),
        Some((0, Origin::Variable(name))) if matches!(name.to_ascii_uppercase().as_str(), "HOME" | "USERPROFILE")
    );
    let rest = if names_home {
        word.holes.remove(0);
        word.text.clone()
    } else {
        match word.text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with(['/', '\\']) => rest.to_owned(),
            _ => return,
        }
    };
    let home = shell.world.home();
    let before = word.text.len() - rest.len();
    for (at, _) in &mut word.holes {
        *at = at.saturating_sub(before) + home.len();
    }
    word.text = format!("{home}{}", rest.replace('\\', "/"));
}

/// `$name`, `$env:NAME`, `${…}`.
fn variable(
    text: &str,
    at: usize,
    signs: &mut std::iter::Peekable<std::str::CharIndices<'_>>,
    word: &mut Value,
) {
    let rest = text.get(at + 1..).unwrap_or("");
    let inner = rest.strip_prefix('{').unwrap_or(rest);
    let length = inner
        .find(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_' || sign == ':'))
        .unwrap_or(inner.len());
    let name = inner.get(..length).unwrap_or("");
    if name.is_empty() {
        word.text.push('$');
        return;
    }
    let name: Rc<str> = Rc::from(name.rsplit(':').next().unwrap_or(name));
    word.holes.push((word.text.len(), Origin::Variable(Rc::clone(&name))));
    word.note_variable(&name);
    let taken = length + if rest.starts_with('{') { 2 } else { 0 };
    for _ in 0..taken {
        signs.next();
    }
}

/// Replaces cmdlets and aliases by the names that rules know.
fn canonical(mut argv: Vec<Value>, is_powershell: bool) -> Vec<Value> {
    let Some(first) = argv.first_mut() else { return argv };
    // `$env:SECRET` alone prints it.
    if is_powershell && first.text.is_empty() && !first.variables.is_empty() {
        if first.variables.iter().any(|name| secrets::is_secret_name(name)) {
            argv.insert(0, Value::known("echo"));
        } else {
            argv.insert(0, Value::known("Write-Output"));
        }
        return argv;
    }
    let lower = first.text.to_ascii_lowercase();
    let name = match lower.as_str() {
        "remove-item" | "ri" | "rd" | "rmdir" | "del" | "erase" | "rm" => "Remove-Item",
        "get-content" | "gc" | "type" | "cat" => "Get-Content",
        "get-childitem" | "gci" | "dir" | "ls" => "Get-ChildItem",
        "set-content" | "sc" | "out-file" | "add-content" | "ac" | "new-item" | "ni" => "Set-Content",
        "invoke-expression" | "iex" => "iex",
        "invoke-webrequest" | "iwr" => "iwr",
        "invoke-restmethod" | "irm" => "irm",
        "start-process" | "saps" | "start" if is_powershell => "Start-Process",
        "write-output" | "write-host" | "echo" => "echo",
        "set-location" | "sl" | "cd" | "chdir" => "cd",
        "copy-item" | "cpi" | "copy" | "cp" => "cp",
        "move-item" | "mi" | "move" | "mv" => "mv",
        _ => return argv,
    };
    // cmd's own commands keep their names if switches identify them.
    if !is_powershell && matches!(name, "Remove-Item" | "Get-ChildItem") {
        first.text = lower;
    } else {
        first.text = name.to_owned();
    }
    argv
}
