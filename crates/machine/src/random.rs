//! Random bytes from the kernel.

use baton_core::id::ID_BYTES;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// Fresh random bytes for one id. Every kernel that baton runs on has this call. If it fails all
/// the same, the id repeats, and the store refuses an id that repeats.
pub fn id() -> [u8; ID_BYTES] {
    bytes().unwrap_or_default()
}

/// Fresh random bytes, for a secret or a name that must be new.
pub fn bytes<const N: usize>() -> Result<[u8; N], Errno> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}
