//! Which process listens at a port of this machine, before anything is sent to it.
//!
//! A port is found free, then the server takes it. In between another process can take it. The
//! kernel says who owns a listening socket: its user, and by its number the process that has it
//! open.

use crate::processes;
use baton_core::limits;
use baton_core::process::Process;
use baton_machine::files;
use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::path::Path;

/// The owner of a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The server, or a process below it.
    Server,
    Another,
    /// Nothing listens there.
    Nobody,
}

/// Which process listens at a port of the loopback address. If the kernel has no such table, a
/// listener counts as the server's. If it does not show the server's files, each listener of this
/// user does.
pub(super) fn owner(port: u16, server: Process) -> Owner {
    let table = |name: &str| files::text(Path::new(name), limits::LOOK_BYTES).ok();
    let tables = [table("/proc/net/tcp"), table("/proc/net/tcp6")];
    if tables.iter().all(Option::is_none) {
        return Owner::Server;
    }
    let found: Vec<Listener> = tables.iter().flatten().flat_map(|table| listeners(table, port)).collect();
    if found.is_empty() {
        return Owner::Nobody;
    }
    let me = rustix::process::geteuid().as_raw();
    // Read after the table, because a listening socket was opened before.
    let own = sockets(server);
    let is_its = |listener: &Listener| {
        listener.user == me && own.as_ref().is_none_or(|own| own.contains(&listener.socket))
    };
    if found.iter().all(is_its) { Owner::Server } else { Owner::Another }
}

/// A listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listener {
    user: u32,
    socket: u64,
}

/// Sockets that listen at a port where a call to the loopback address reaches them.
fn listeners(table: &str, port: u16) -> Vec<Listener> {
    let listening = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (address, at) = words.next()?.rsplit_once(':')?;
        let (_, state) = (words.next()?, words.next()?);
        // State 0A is listening; the user is the fourth word after it, the socket the sixth.
        let user = words.nth(3)?.parse().ok()?;
        let socket = words.nth(1)?.parse().ok()?;
        let fits = state == "0A" && u16::from_str_radix(at, 16) == Ok(port) && is_reached(address);
        fits.then_some(Listener { user, socket })
    };
    table.lines().skip(1).filter_map(listening).collect()
}

/// The sockets that a process and its descendants have open; `None` if the kernel shows none of
/// their files.
fn sockets(root: Process) -> Option<HashSet<u64>> {
    let mut found = None;
    for pid in processes::tree(root) {
        let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        let found = found.get_or_insert_with(HashSet::new);
        for file in files.flatten() {
            let Ok(leads_to) = std::fs::read_link(file.path()) else { continue };
            let number = leads_to.to_str().and_then(|name| name.strip_prefix("socket:[")?.strip_suffix(']'));
            found.extend(number.and_then(|number| number.parse::<u64>().ok()));
        }
    }
    found
}

/// Whether a call to 127.0.0.1 reaches a socket with this address: that one, or any. The kernel
/// writes words in its own byte order.
fn is_reached(address: &str) -> bool {
    let loopback = u32::from_ne_bytes(Ipv4Addr::LOCALHOST.octets());
    let last = address.get(address.len().saturating_sub(8)..).unwrap_or_default();
    address.bytes().all(|digit| digit == b'0') || u32::from_str_radix(last, 16) == Ok(loopback)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::keeper::{Server, wait_until_it_answers};
    use super::*;
    use baton_machine::process;
    use std::net::{IpAddr, Ipv6Addr, TcpListener};
    use std::process::Command;
    use std::time::{Duration, Instant};

    const ADDRESSES: [IpAddr; 3] = [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    ];

    #[test]
    fn s13_a_listener_is_known_by_its_process() {
        let mut other = Command::new("sleep").arg("600").spawn().unwrap();
        let server = process::find(other.id().cast_signed()).unwrap();
        for address in ADDRESSES {
            let Ok(socket) = TcpListener::bind((address, 0)) else { continue };
            let port = socket.local_addr().unwrap().port();
            assert_eq!(owner(port, process::this()), Owner::Server, "{address}");
            assert_eq!(owner(port, server), Owner::Another, "{address}: of the same user");
            drop(socket);
            assert_eq!(owner(port, process::this()), Owner::Nobody, "{address}");
        }
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn s13_a_process_of_the_same_user_that_took_the_port_first_hears_no_word() {
        for address in ADDRESSES {
            let Ok(thief) = TcpListener::bind((address, 0)) else { continue };
            thief.set_nonblocking(true).unwrap();
            let mut child = Command::new("sleep").arg("600").spawn().unwrap();
            let server = Server {
                port: thief.local_addr().unwrap().port(),
                password: "secret".to_owned(),
                process: process::find(child.id().cast_signed()).unwrap(),
            };
            let end = Instant::now() + Duration::from_secs(20);
            let refused = wait_until_it_answers(&server, &mut child, end).unwrap_err();
            assert!(refused.contains("another process took port"), "{refused}");
            let called = thief.accept().map(drop).unwrap_err();
            assert_eq!(called.kind(), std::io::ErrorKind::WouldBlock, "{address}: no call came");
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn s13_another_users_listener_is_told_apart() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        let line = |address: &str, state: &str| {
            format!(
                "{head}   0: {address}:1F90 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1234        0 7 1\n"
            )
        };
        let found = [Listener { user: 1234, socket: 7 }];
        assert_eq!(listeners(&line("0100007F", "0A"), 8080), found);
        assert_eq!(listeners(&line("00000000", "0A"), 8080), found);
        assert_eq!(listeners(&line("0100007F", "01"), 8080), []);
        assert_eq!(listeners(&line("0100007F", "0A"), 8081), []);
        assert_eq!(listeners(&line("0200000A", "0A"), 8080), []);
    }
}
