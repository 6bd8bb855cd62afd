//! SQL that runs on a database.

use super::{Example, Finding, Params, Rule};
use crate::judge::{Facts, GuardEvent};
use crate::shell::Command;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "warn-destructive-sql",
        on: false,
        event: GuardEvent::Before,
        forbids_commands: false,
        parameters: &[],
        about: "notes DROP, TRUNCATE, DELETE or UPDATE without WHERE, and commands that drop a database",
        check: destructive,
        bad: &[
            Example::Shell("psql -c 'DROP TABLE users'"),
            Example::Shell("mysql db -e \"DELETE FROM users -- WHERE 1\""),
            Example::Shell("echo 'truncate orders;' | psql"),
            Example::Shell("sqlite3 a.db <<E\nUPDATE users SET a = 1;\nE"),
            Example::Shell("dropdb --if-exists prod"),
            Example::Shell("mysqladmin -u root drop shop"),
            Example::Shell("bundle exec rails db:drop"),
            Example::Shell("npx prisma migrate reset --force"),
            Example::Shell("mongosh shop --eval 'db.dropDatabase()'"),
            Example::Shell("redis-cli -n 1 flushdb"),
            Example::Shell("python3 manage.py flush --noinput"),
        ],
        good: &[
            Example::Shell("psql -c 'SELECT * FROM drops'"),
            Example::Shell("psql -c 'DELETE FROM users WHERE id = 1'"),
            Example::Shell("echo 'DROP TABLE users'"),
            Example::Shell("psql -c \"SELECT 'DROP TABLE x'\""),
            Example::Shell("dropdb --help"),
            Example::Shell("mysqladmin status"),
            Example::Shell("rails db:migrate"),
            Example::Shell("npx prisma migrate status"),
            Example::Shell("python3 manage.py migrate"),
            Example::Shell("redis-cli get flushdb"),
        ],
    },
    Rule {
        id: "warn-schema-alteration",
        on: false,
        event: GuardEvent::Before,
        forbids_commands: false,
        parameters: &[],
        about: "notes ALTER",
        check: alteration,
        bad: &[
            Example::Shell("psql -c 'ALTER TABLE users ADD COLUMN age INT'"),
            Example::Shell("mysql db <<< 'alter table a drop b'"),
        ],
        good: &[Example::Shell("psql -c 'SELECT altered FROM a'"), Example::Shell("echo 'ALTER TABLE a'")],
    },
];

const SQL_CLIENTS: &[&str] = &[
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "sqlite",
    "duckdb",
    "sqlcmd",
    "pgcli",
    "mycli",
    "litecli",
    "usql",
    "snowsql",
    "sqlplus",
    "isql",
    "clickhouse-client",
    "clickhouse",
    "cockroach",
    "bq",
    "osql",
    "tsql",
    "mssql-cli",
    "trino",
    "presto",
    "beeline",
    "hive",
    "cqlsh",
    "spark-sql",
    "impala-shell",
    "vsql",
    "db2",
    "wrangler",
    "turso",
    "supabase",
    "neonctl",
    "prisma",
    "dbmate",
];

/// Programs that drop a database or its content, each with the words that do it; without words the
/// name alone does.
const DROP_COMMANDS: &[(&str, &[&str])] = &[
    ("dropdb", &[]),
    ("mysqladmin", &["drop"]),
    ("mariadb-admin", &["drop"]),
    ("rails", &["db:drop", "db:reset", "db:purge", "db:drop:all", "db:migrate:reset", "db:schema:load"]),
    ("rake", &["db:drop", "db:reset", "db:purge", "db:drop:all", "db:migrate:reset", "db:schema:load"]),
    ("prisma", &["reset", "--force-reset"]),
    ("supabase", &["reset"]),
    ("mix", &["ecto.drop", "ecto.reset"]),
    ("artisan", &["migrate:fresh", "migrate:reset", "db:wipe"]),
    ("manage.py", &["flush", "reset_db", "sqlflush"]),
    ("sequelize", &["db:drop", "db:migrate:undo:all"]),
    ("sequelize-cli", &["db:drop", "db:migrate:undo:all"]),
    ("typeorm", &["schema:drop"]),
    ("doctrine", &["orm:schema-tool:drop"]),
    ("console", &["doctrine:database:drop", "doctrine:schema:drop"]),
    ("dbmate", &["drop"]),
    ("sqlx", &["drop", "reset"]),
    ("diesel", &["reset"]),
    ("knex", &["--all"]),
];

/// The program of a command that drops a database.
fn dropper(command: &Command) -> Option<&'static str> {
    let asks_help = command.texts().any(|arg| matches!(arg, "--help" | "--version"));
    // `php artisan`, `python3 manage.py`: the script is the program.
    let is_named = |name: &str| {
        command.name == name
            || (matches!(name, "artisan" | "manage.py" | "console")
                && command.texts().next().is_some_and(|first| crate::path::file_name(first) == name))
    };
    let (name, _) = DROP_COMMANDS.iter().filter(|_| !asks_help).find(|(name, words)| {
        is_named(name) && (words.is_empty() || words.iter().any(|word| command.has(word)))
    })?;
    Some(name)
}

/// Commands that empty a database without SQL.
fn empties(command: &Command) -> bool {
    match command.name.as_str() {
        "mongo" | "mongosh" => {
            let calls = |text: &str| {
                [".dropDatabase(", ".drop()", ".deleteMany({})"].iter().any(|call| text.contains(call))
            };
            command.texts().any(calls) || command.stdin.as_deref().is_some_and(|text| calls(&text.text))
        }
        "redis-cli" | "valkey-cli" => {
            super::operands(command.args(), &["-n", "-h", "-p", "-a", "-u", "--user"])
                .first()
                .is_some_and(|word| matches!(word.text.to_ascii_lowercase().as_str(), "flushall" | "flushdb"))
        }
        _ => false,
    }
}

fn destructive(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    if let Some(name) = facts.analysis.iter().flat_map(|analysis| &analysis.commands).find_map(|command| {
        dropper(command).or_else(|| empties(command).then_some("the database's own client"))
    }) {
        return Finding::note(format!(
            "`{name}` drops what is in a database, which can't be undone. Check which database it is."
        ));
    }
    let what = statements(facts).into_iter().find_map(|words| danger(&words))?;
    Finding::note(format!(
        "This SQL runs {what}, which can't be undone. Check the affected rows with a SELECT first, and use a transaction."
    ))
}

fn alteration(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    statements(facts).into_iter().find(|words| {
        words.iter().any(|word| word == "ALTER") && words.first().is_some_and(|word| word != "SELECT")
    })?;
    Finding::note("This SQL changes a schema. Put it into a migration, so that others get it too.")
}

fn danger(words: &[String]) -> Option<&'static str> {
    let has = |word: &str| words.iter().any(|other| other == word);
    let first = words.first()?.as_str();
    let after = |word: &str| {
        words.iter().position(|other| other == word).and_then(|at| words.get(at + 1)).map(String::as_str)
    };
    if matches!(first, "SELECT" | "EXPLAIN" | "SHOW" | "DESCRIBE" | "COMMENT" | "INSERT" | "GRANT")
        && first != "EXPLAIN"
    {
        return None;
    }
    if has("DROP") {
        return Some("DROP");
    }
    if first == "TRUNCATE" {
        return Some("TRUNCATE");
    }
    if has("DELETE")
        && (after("DELETE") == Some("FROM") || first == "DELETE")
        && !has("WHERE")
        && first != "CREATE"
    {
        return Some("DELETE without WHERE");
    }
    if has("UPDATE") && has("SET") && !has("WHERE") && first != "CREATE" && first != "ALTER" {
        return Some("UPDATE without WHERE");
    }
    if words
        .iter()
        .any(|word| matches!(word.as_str(), "DROPDATABASE" | "DELETEMANY" | "FLUSHALL" | "FLUSHDB"))
    {
        return Some("a delete of everything");
    }
    None
}

/// The statements that run on databases, as upper-case words.
fn statements(facts: &Facts<'_>) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    let commands = facts.analysis.iter().flat_map(|analysis| &analysis.commands);
    for command in commands.filter(|command| SQL_CLIENTS.contains(&command.name.as_str())) {
        for text in texts(command, facts) {
            out.extend(split(&text));
        }
    }
    out
}

fn texts(command: &Command, facts: &Facts<'_>) -> Vec<String> {
    let mut out: Vec<String> = command
        .texts()
        .filter(|arg| arg.contains(char::is_whitespace) || arg.len() > 8)
        .map(glued_value)
        .collect();
    out.extend(command.stdin.as_deref().map(|stdin| stdin.text.clone()).filter(|text| !text.is_empty()));
    let args = command.args();
    let mut files: Vec<String> = args
        .iter()
        .enumerate()
        .filter(|(_, arg)| matches!(arg.text.as_str(), "-f" | "--file" | "-i" | "--input-file" | "-init"))
        .filter_map(|(number, _)| args.get(number + 1))
        .map(|file| file.text.clone())
        .collect();
    files.extend(args.iter().filter_map(|arg| arg.text.strip_prefix("--file=").map(str::to_owned)));
    files.extend(
        command
            .redirects
            .iter()
            .filter(|redirect| redirect.op == crate::shell::syntax::RedirectOp::Read)
            .map(|redirect| redirect.target.text.clone()),
    );
    files.extend(
        args.iter().filter_map(|arg| arg.text.strip_prefix(".read ").map(|file| file.trim().to_owned())),
    );
    let cwd = command.cwd.as_deref().unwrap_or("/");
    for file in files {
        let path = crate::path::join(cwd, &file);
        let written = facts
            .analysis
            .as_ref()
            .and_then(|analysis| analysis.files.get(&path))
            .map(|value| value.text.clone());
        out.extend(written.or_else(|| facts.world.read_file(&path, 65_536)));
    }
    out
}

/// `-eDROP TABLE x`, `--execute=DROP …`.
fn glued_value(arg: &str) -> String {
    let text = if let Some((_, value)) =
        arg.split_once('=').filter(|(option, _)| option.starts_with("--") && !option.contains(' '))
    {
        value
    } else if let Some(rest) = arg.strip_prefix('-').filter(|rest| rest.len() > 2 && !rest.starts_with('-')) {
        rest.get(1..).unwrap_or(rest)
    } else {
        arg
    };
    text.to_owned()
}

/// Statements without comments and quoted texts.
fn split(text: &str) -> Vec<Vec<String>> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut words = Vec::new();
    let mut word = String::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let next = bytes.get(at + 1);
        let end_word = |word: &mut String, words: &mut Vec<String>| {
            if !word.is_empty() {
                words.push(std::mem::take(word).to_ascii_uppercase());
            }
        };
        match byte {
            b'-' if next == Some(&b'-') => {
                end_word(&mut word, &mut words);
                while bytes.get(at).is_some_and(|byte| *byte != b'\n') {
                    at += 1;
                }
            }
            b'/' if next == Some(&b'*') => {
                end_word(&mut word, &mut words);
                // MySQL runs the text in `/*! … */`.
                let runs = bytes.get(at + 2) == Some(&b'!');
                at += 3;
                if !runs {
                    while at < bytes.len()
                        && !(bytes.get(at - 1) == Some(&b'*') && bytes.get(at) == Some(&b'/'))
                    {
                        at += 1;
                    }
                    at += 1;
                }
            }
            b'\'' | b'"' | b'`' => {
                end_word(&mut word, &mut words);
                at += 1;
                while bytes.get(at).is_some_and(|other| other != byte) {
                    at += if bytes.get(at) == Some(&b'\\') { 2 } else { 1 };
                }
                words.push("'".to_owned());
                at += 1;
            }
            b';' => {
                end_word(&mut word, &mut words);
                if !words.is_empty() {
                    out.push(std::mem::take(&mut words));
                }
                at += 1;
            }
            byte if byte.is_ascii_alphanumeric() || *byte == b'_' => {
                word.push(char::from(*byte));
                at += 1;
            }
            _ => {
                end_word(&mut word, &mut words);
                at += 1;
            }
        }
        if words.len() > 100_000 || out.len() > 10_000 {
            break;
        }
    }
    if !word.is_empty() {
        words.push(word.to_ascii_uppercase());
    }
    if !words.is_empty() {
        out.push(words);
    }
    out
}
