//! The corpus of the fuzz target, replayed; and each of its files cut and doubled.

#[path = "../../../../fuzz/guard.rs"]
mod body;

use std::path::Path;

#[test]
fn every_text_of_the_corpus_is_judged_in_time_and_every_cut_of_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/guard");
    let mut texts = 0;
    for entry in std::fs::read_dir(&folder).unwrap().flatten() {
        let bytes = std::fs::read(entry.path()).unwrap();
        body::judged(&bytes);
        for cut in (0..bytes.len()).step_by((bytes.len() / 6).max(1)) {
            body::judged(&bytes[..cut]);
        }
        body::judged(&[&bytes[..], &bytes[..]].concat());
        texts += 1;
    }
    assert!(texts > 50, "{texts}");
}
