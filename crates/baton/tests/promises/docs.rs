//! The documents: numbers, tests and links that they name exist, and prose is wrapped.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The longest line of prose.
const COLUMNS: usize = 100;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Every page that people read.
fn pages() -> Vec<PathBuf> {
    let in_folder = |folder: PathBuf| {
        let files = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
        files.filter(|file| file.extension().is_some_and(|end| end == "md")).collect::<Vec<_>>()
    };
    let pages = [in_folder(root()), in_folder(root().join("docs"))].concat();
    assert!(pages.len() > 12, "{pages:?}");
    pages
}

fn files_below(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path, ending, found);
        } else if path.extension().is_some_and(|end| end == ending) {
            found.push(path);
        }
    }
}

/// Words like `M12`: a letter of the promises and a number.
fn numbers(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_number = |word: &&str| {
        let rest = word.strip_prefix(['M', 'G', 'J', 'A']).unwrap_or_default();
        !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit())
    };
    words.filter(is_number).map(str::to_owned).collect()
}

#[test]
fn every_promise_is_in_the_contract_and_no_other() {
    let promised: BTreeSet<String> = text("docs/promises.md")
        .lines()
        .filter_map(|line| line.strip_prefix("- **")?.split("**").next().map(str::to_owned))
        .collect();
    assert!(promised.len() > 70, "{promised:?}");
    assert_eq!(numbers(&text("docs/contract.md")), promised);
}

#[test]
fn the_contract_has_the_lines_of_the_readme() {
    let readme = text("README.md");
    let lines = readme.lines().filter_map(|line| {
        let (number, rest) = line.split_once(". **")?;
        Some(format!("{number}. {}", rest.split("**").next()?.trim_end_matches('.')))
    });
    let contract = text("docs/contract.md");
    let sections: Vec<String> =
        contract.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned).collect();
    assert_eq!(lines.collect::<Vec<_>>(), sections);
}

#[test]
fn every_test_that_the_promises_name_exists() {
    let mut files = Vec::new();
    files_below(&root().join("crates"), "rs", &mut files);
    files_below(&root().join("tests"), "rs", &mut files);
    let code: String = files.iter().map(|file| fs::read_to_string(file).expect("code")).collect();
    let promises = text("docs/promises.md");
    let mut named = 0;
    for word in promises.split('`').skip(1).step_by(2) {
        let is_test = word.matches('_').count() >= 3 && !word.contains(['/', '.', '*']);
        if is_test {
            named += 1;
            let start = word.trim_end_matches('…');
            let end = if word.ends_with('…') { "" } else { "()" };
            let is_there =
                code.contains(&format!("fn {start}{end}")) || code.contains(&format!("_{start}{end}"));
            assert!(is_there, "no test is called {word}");
        }
    }
    assert!(named > 40, "{named}");
}

#[test]
fn prose_is_wrapped_and_links_lead_somewhere() {
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        let (mut in_code, mut is_generated) = (false, false);
        for (number, line) in text.lines().enumerate() {
            in_code ^= line.trim_start().starts_with("```");
            if line.starts_with("<!-- ") {
                is_generated = !line.starts_with("<!-- end");
            }
            let is_prose = !in_code && !is_generated && !line.starts_with('|');
            let width = line.chars().count();
            assert!(!is_prose || width <= COLUMNS, "{}:{}: {width} columns", page.display(), number + 1);
        }
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            if !file.is_empty() && !link.contains("://") {
                let target = page.parent().expect("a folder").join(file);
                assert!(target.exists(), "{}: {link} leads nowhere", page.display());
            }
        }
    }
}

/// Tables and drawings in comments may be wider.
#[test]
fn comments_are_wrapped() {
    let mut files = Vec::new();
    files_below(&root().join("crates"), "rs", &mut files);
    files_below(&root().join("tests"), "rs", &mut files);
    assert!(files.len() > 300, "{}", files.len());
    for file in files {
        let text = fs::read_to_string(&file).expect("code");
        let mut is_drawing = false;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"))
        {
            is_drawing ^= line.contains("```");
            let is_prose = !is_drawing && !line.contains('|') && !line.contains("     ");
            let width = line.chars().count();
            assert!(!is_prose || width <= COLUMNS, "{}:{}: {width} columns", file.display(), number + 1);
        }
    }
}

#[test]
fn every_path_on_the_map_exists() {
    let map = text("ARCHITECTURE.md");
    let mut named = 0;
    for path in
        map.split('`').skip(1).step_by(2).filter(|word| word.contains('/') && word.ends_with(['/', 's']))
    {
        let is_pattern = path.contains(['<', '…', ' '])
            || path.starts_with('/')
            || path.contains("CLI")
            || path.contains("JOB");
        let Some((first, rest)) = path.split_once('/').filter(|(_, rest)| !is_pattern && !rest.is_empty())
        else {
            continue;
        };
        named += 1;
        let crates = root().join("crates");
        let places = [
            root().join(path),
            crates.join(first).join(rest),
            crates.join(first).join("src").join(rest),
            crates.join("baton/src").join(path),
        ];
        assert!(places.iter().any(|place| place.exists()), "ARCHITECTURE.md: {path} is not there");
    }
    assert!(named > 40, "{named}");
}
