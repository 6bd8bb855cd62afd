//! The corpus of the fuzz targets, replayed; and each of its files cut, doubled and with changed
//! bytes.

#[path = "../../../../fuzz/bodies.rs"]
mod bodies;

use baton_agents::ALL;
use proptest::prelude::*;
use std::path::Path;

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries
        .flatten()
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{target} has no corpus");
    files
}

#[test]
fn every_payload_of_the_corpus_is_read_and_every_cut_of_it() {
    for agent in ALL {
        for (_, bytes) in corpus(&format!("payload_{}", agent.name())) {
            bodies::payload(agent.name(), &bytes);
            let step = (bytes.len() / 40).max(1);
            for cut in (0..bytes.len()).step_by(step) {
                bodies::payload(agent.name(), &bytes[..cut]);
            }
        }
    }
}

#[test]
fn every_file_of_the_corpus_comes_back() {
    for agent in ALL {
        for (_, bytes) in corpus(&format!("config_{}", agent.name())) {
            bodies::config(agent.name(), &bytes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn payloads_with_changed_bytes_panic_nowhere(seed in any::<usize>(), changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..6)) {
        let agent = ALL[seed % ALL.len()];
        let files = corpus(&format!("payload_{}", agent.name()));
        let mut bytes = files[seed % files.len()].1.clone();
        for (at, byte) in changes {
            let at = at % bytes.len().max(1);
            if let Some(there) = bytes.get_mut(at) {
                *there = byte;
            }
        }
        bodies::payload(agent.name(), &bytes);
        bodies::config(agent.name(), &bytes);
    }
}
