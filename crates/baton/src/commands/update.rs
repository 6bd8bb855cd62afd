//! `update`: how this copy was installed, and the command that installs a newer one. It fetches
//! nothing, and changes nothing.

use crate::environment;
use crate::print::{Out, Tone, done, text};
use crate::version;
use baton_core::Error;
use baton_core::error::Exit;
use baton_core::installed::{self, Facts, Installed};
use baton_core::limits;
use baton_machine::files;
use serde_json::json;
use std::path::Path;
use toml_edit::DocumentMut;

/// The longest program that is compared with the mark of its package.
const PROGRAM_BYTES: u64 = 1 << 28;
/// How far above a program the folder is into which Cargo builds: `target/TRIPLE/release/baton`.
const BUILD_FOLDERS: usize = 4;

pub fn run(out: &Out) -> Result<Exit, Error> {
    let program = environment::own_program()?;
    let program = program.canonicalize().unwrap_or(program);
    let Installed { by, run } = installed(&program);
    let document = json!({
        "version": version::NUMBER,
        "commit": version::COMMIT,
        "date": version::DATE,
        "program": program.display().to_string(),
        "installed_by": by,
        "run": run,
    });
    out.data(&document, || {
        let mut shown = text![
            "baton ",
            version::LINE,
            "\n",
            program.display().to_string(),
            match by {
                "unknown" => "\nbaton does not know how it was installed. Install a newer one as you installed this one.",
                "build" => "\nThis is a build in a folder of Cargo. To build a newer one:",
                "deb" | "tarball" => "\nThis is the copy of a package. To install a newer one, fetch its file, then:",
                _ => "\nTo install a newer one:",
            },
        ];
        if let Some(run) = &run {
            shown.push("\n  ");
            shown.push(text![out.tone(Tone::Bold, run)]);
        }
        shown.push("\nbaton itself fetches nothing. Sessions that run use the new program at their next hook.");
        shown
    })?;
    done()
}

/// How a program was installed, by the files around it.
fn installed(program: &Path) -> Installed {
    let folder = program.parent().unwrap_or(Path::new("/"));
    let above = folder.parent().unwrap_or(Path::new("/"));
    let mark = files::text(&folder.join(installed::MARK), limits::POINTER_BYTES)
        .ok()
        .filter(|mark| files::read(program, PROGRAM_BYTES).is_ok_and(|bytes| installed::fits(mark, &bytes)));
    let source = cargo_source(above);
    let was_built_here =
        folder.ancestors().take(BUILD_FOLDERS).any(|folder| folder.join("CACHEDIR.TAG").is_file());
    installed::judge(&Facts {
        program: &program.display().to_string(),
        mark: mark.as_deref(),
        cargo_source: source.as_deref(),
        of_uv: above.join("uv-receipt.toml").is_file(),
        of_pipx: above.join("pipx_metadata.json").is_file(),
        was_built_here,
    })
}

/// Where Cargo's record of a folder says that its baton comes from.
fn cargo_source(folder: &Path) -> Option<String> {
    let record = files::text(&folder.join(".crates.toml"), limits::CONFIG_BYTES).ok()?;
    let record: DocumentMut = record.parse().ok()?;
    let crates = record.get("v1")?.as_table_like()?;
    crates.iter().find_map(|(package, programs)| {
        let source = package.strip_prefix("baton ")?.split_once('(')?.1.strip_suffix(')')?;
        let has_it = programs.as_array()?.iter().any(|program| program.as_str() == Some("baton"));
        has_it.then(|| source.to_owned())
    })
}
