//! Searches for bytes in bytes. Every hook does this.

/// Whether `text` contains `sought`.
///
/// Uses only SSE2, which every x86-64 CPU has. memchr's default entry runs CPUID first, and in a VM
/// each CPUID traps to the host. Its seven calls take longer than searching a whole transcript.
#[cfg(target_arch = "x86_64")]
pub fn contains(text: &[u8], sought: &[u8]) -> bool {
    use memchr::arch::all::twoway;
    use memchr::arch::x86_64::sse2::packedpair;
    match packedpair::Finder::new(sought) {
        Some(finder) if text.len() >= finder.min_haystack_len() => finder.find(text, sought).is_some(),
        _ => twoway::Finder::new(sought).find(text, sought).is_some(),
    }
}

/// Whether `text` contains `sought`.
#[cfg(not(target_arch = "x86_64"))]
pub fn contains(text: &[u8], sought: &[u8]) -> bool {
    memchr::memmem::find(text, sought).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_finds_what_is_there(text in "[ab]{0,80}", sought in "[ab]{0,9}") {
            prop_assert_eq!(contains(text.as_bytes(), sought.as_bytes()), text.contains(&sought));
        }

        #[test]
        fn also_at_the_very_end(text in proptest::collection::vec(any::<u8>(), 0..200), sought in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut whole = text;
            whole.extend(&sought);
            prop_assert!(contains(&whole, &sought));
        }
    }
}
