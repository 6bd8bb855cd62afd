//! What comes from another machine by other means than a downloader: copies, releases, archives
//! that are unpacked.

use super::*;
use crate::tables::downloads::{FETCHES, FetchForm};
use crate::tables::taken;

/// Folders that hold something downloaded, at the most.
const MAX_FETCHED_FOLDERS: usize = 32;

impl Shell<'_> {
    /// Notes what a program of the table fetches. True where it prints it.
    pub(in crate::shell) fn note_fetches(&mut self, name: &str, args: &[Value]) -> bool {
        let mut prints = false;
        for row in FETCHES.iter().filter(|row| row.call.starts_with(name)) {
            let Some(at) = taken(row.call, name, args) else { continue };
            let rest = args.get(at..).unwrap_or(&[]);
            match row.form {
                FetchForm::Prints => prints = true,
                FetchForm::PrintsWith(option) => {
                    prints |= rest.iter().any(|arg| arg.text.starts_with(option));
                }
                FetchForm::Files(options) => {
                    for file in values_of(rest, options) {
                        self.note_fetched_file(&file);
                    }
                }
                FetchForm::Folder(options) => {
                    let folder = values_of(rest, options).into_iter().next();
                    self.note_fetched_folder(&folder.unwrap_or_else(|| Value::known(".")));
                }
                FetchForm::NamedByAddress => {
                    let words = crate::rules::operands(rest, &["-r", "--revision"]);
                    let Some(address) = words.first() else { continue };
                    let name = path::file_name(address.text.trim_end_matches('/'));
                    let named = words.get(1).map_or_else(|| Value::known(name), |word| (*word).clone());
                    self.note_fetched_file(&named);
                }
            }
        }
        prints
    }

    fn note_fetched_file(&mut self, file: &Value) {
        if let Some(path) = self.absolute(file) {
            self.write_file(path, Value::unknown(Origin::Download));
        }
    }

    fn note_fetched_folder(&mut self, folder: &Value) {
        if let Some(path) = self.absolute(folder).filter(|_| self.fetched.len() < MAX_FETCHED_FOLDERS) {
            self.fetched.push(path);
        }
    }

    /// Notes the folder into which a downloaded archive is unpacked.
    pub(super) fn note_unpacked(&mut self, name: &str, args: &[Value], context: &Context) {
        let words: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
        let first = words.first().copied().unwrap_or("");
        let unpacks = match name {
            "tar" | "gtar" | "bsdtar" => {
                let bundled = !first.starts_with("--") && first.contains('x');
                bundled || words.iter().any(|word| matches!(*word, "-x" | "--extract" | "--get"))
            }
            "unzip" => true,
            _ => matches!(first, "x" | "e"),
        };
        let is_fetched = |shell: &Self| {
            args.iter().any(|arg| shell.content(arg).is_download())
                || context.stdin.as_deref().is_some_and(Value::is_download)
        };
        if unpacks && is_fetched(self) {
            let folder = value_of(args, &["-C", "--directory", "-d"]);
            self.note_fetched_folder(&folder.unwrap_or_else(|| Value::known(".")));
        }
    }

    /// Whether a file comes out of something that the text downloads: it is in such a folder, and
    /// was not there before.
    pub(in crate::shell) fn is_fetched(&self, path: &str) -> bool {
        self.fetched.iter().any(|folder| path::is_below(path, folder))
            && self.world.exists(path) != Some(true)
    }
}
