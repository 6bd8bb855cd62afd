//! Disks, and the machine as a whole.

use super::{Example, Finding, Params, Rule, operands, short};
use crate::judge::{Facts, GuardEvent};
use crate::path;
use crate::shell::{Command, Location};

pub(super) const RULES: &[Rule] = &[Rule {
    id: "block-disk",
    on: true,
    event: GuardEvent::Before,
    forbids_commands: true,
    parameters: &[],
    about: "blocks formatting and overwriting disks, chmod -R of a root, and fork bombs",
    check,
    bad: &[
        Example::Shell("mkfs.ext4 /dev/sda1"),
        Example::Shell("dd if=/dev/zero of=/dev/nvme0n1 bs=1M"),
        Example::Shell("cat x > /dev/sda"),
        Example::Shell("chmod -R 777 /"),
        Example::Shell("chown -R me ~"),
        Example::Shell(":(){ :|:& };:"),
        Example::Shell("perl -e 'fork while fork'"),
        Example::Shell("wipefs -a /dev/sdb"),
    ],
    good: &[
        Example::Shell("dd if=/dev/zero of=disk.img bs=1M count=10"),
        Example::Shell("chmod -R u+w dist"),
        Example::Shell("chmod +x /home/me/project/a.sh"),
        Example::Shell("parted -l"),
        Example::Shell("mkfs.ext4 disk.img"),
        Example::Shell("f() { [ $1 = 0 ] || f 0; }; f 1"),
    ],
}];

fn is_disk(path: &str) -> bool {
    let Some(name) = path.strip_prefix("/dev/") else { return path.starts_with("\\\\.\\PhysicalDrive") };
    let name = name.strip_prefix("disk/").map_or(name, |_| "sda");
    ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "md", "dm-", "loop", "zd"]
        .iter()
        .any(|start| {
            name.strip_prefix(start).is_some_and(|rest| {
                rest.is_empty()
                    || rest.starts_with(|sign: char| {
                        sign.is_ascii_alphanumeric() || matches!(sign, '*' | '?' | '[' | '{')
                    })
            })
        })
}

fn check(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    if let Some(touch) =
        facts.touches.iter().find(|touch| touch.deed.changes() && touch.path.as_deref().is_some_and(is_disk))
    {
        return Finding::deny(format!(
            "Blocked: this would overwrite the disk {}. Work on an image file.",
            touch.show()
        ));
    }
    let in_container = facts.analysis.iter().flat_map(|analysis| &analysis.commands).find(|command| {
        command.location == Location::Container && harms_disk(command) && reaches_disks(facts)
    });
    if let Some(command) =
        in_container.or_else(|| facts.commands_anywhere().find(|command| harms_disk(command)))
    {
        return Finding::deny(format!(
            "Blocked: `{}` would destroy the data on a disk. Ask the person.",
            short(&command.show())
        ));
    }
    if let Some(command) = facts.commands_anywhere().find(|command| changes_root(command, facts)) {
        return Finding::deny(format!(
            "Blocked: `{}` changes the permissions of a whole system or home. Name files of the project.",
            short(&command.show())
        ));
    }
    let bombs = facts.analysis.as_ref().is_some_and(|analysis| !analysis.recursive.is_empty())
        || facts.commands().any(forks_forever);
    if bombs {
        return Finding::deny("Blocked: this starts endless copies of itself.");
    }
    None
}

fn harms_disk(command: &Command) -> bool {
    let words = operands(command.args(), &["-t", "-L", "-n", "-b"]);
    let names_disk =
        words.iter().any(|word| word.text.starts_with("/dev/") || word.is_opaque()) || words.is_empty();
    let lists = command.has_short("l")
        || command.has("--list")
        || command.has("print")
        || command.has("--help")
        || command.has("--version")
        || command.has("-V");
    match command.name.as_str() {
        "mkfs" | "mke2fs" | "mkswap" | "newfs" | "mkdosfs" | "mkntfs" => names_disk && !lists,
        name if name.starts_with("mkfs.") || name.starts_with("newfs_") => names_disk && !lists,
        "wipefs" => command.has_short("a") || command.has("--all") || command.has_short("o"),
        "parted" | "fdisk" | "sfdisk" | "sgdisk" | "cfdisk" | "gdisk" => !lists && !words.is_empty(),
        "blkdiscard" | "lvremove" | "vgremove" | "pvremove" => true,
        "pvcreate" | "vgcreate" | "scrub" | "nwipe" | "ddrescue" | "dd_rescue" | "partclone.restore"
        | "bcache" | "mkfs_msdos" => names_disk,
        "dd" | "gdd" | "dcfldd" | "dc3dd" => command
            .texts()
            .any(|arg| arg.strip_prefix("of=").or(arg.strip_prefix("wipe=")).is_some_and(is_disk)),
        "cryptsetup" => {
            command.texts().any(|arg| matches!(arg, "luksFormat" | "erase" | "luksErase" | "reencrypt"))
        }
        "hdparm" => {
            command.texts().any(|arg| arg.starts_with("--security-erase") || arg.starts_with("--trim-sector"))
        }
        "nvme" => command.has("format") || command.has("sanitize"),
        "badblocks" => command.has_short("w"),
        "mdadm" => command.has("--zero-superblock"),
        "zpool" | "zfs" => {
            command.has("destroy") || command.has("labelclear") || (command.has("create") && names_disk)
        }
        "diskutil" => command.texts().any(|arg| {
            let lower = arg.to_ascii_lowercase();
            lower.starts_with("erase")
                || lower.starts_with("partition")
                || lower == "zerodisk"
                || lower == "randomdisk"
                || lower == "secureerase"
                || lower == "reformat"
        }),
        "format" | "Format-Volume" | "Clear-Disk" | "Initialize-Disk" => {
            command.name != "format" || words.iter().any(|word| path::is_drive(&word.text))
        }
        "diskpart" => true,
        "shred" => words.iter().any(|word| is_disk(&word.text)),
        _ => false,
    }
}

/// Whether a container gets the disks of this machine.
fn reaches_disks(facts: &Facts<'_>) -> bool {
    facts.commands_anywhere().any(|command| {
        command.texts().any(|arg| {
            arg == "--privileged"
                || arg.starts_with("--device")
                || arg.starts_with("/dev:")
                || arg.contains("=/dev/")
        })
    })
}

fn changes_root(command: &Command, facts: &Facts<'_>) -> bool {
    let names_change = matches!(
        command.name.as_str(),
        "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" | "chflags" | "icacls" | "takeown"
    );
    if !names_change
        || !(command.has_short("R")
            || command.has_long("--recursive", 5)
            || command.has("/T")
            || command.has("/t")
            || facts.commands().any(runs_for_each))
    {
        return false;
    }
    facts.touches.iter().filter(|touch| touch.by == command.name && touch.deed.changes()).any(|touch| {
        let (Some(path), Some(real)) = (&touch.path, &touch.real) else { return false };
        let depth = path.split('/').filter(|part| !part.is_empty()).count();
        let solid = if touch.is_pattern { real } else { path };
        let top =
            solid == "/" || (depth == 1 && !path.starts_with("/tmp")) || path::is_drive(solid) && depth <= 1;
        let system = [
            "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/sys", "/proc", "/dev", "/System",
            "/Library",
        ]
        .iter()
        .any(|folder| path::is_below(solid, folder));
        top || system
            || *solid == facts.home
            || (path::is_below(&facts.project, solid) && *solid != facts.project && !touch.is_unknown)
    })
}

/// Whether a command runs another one for everything that it finds below a folder.
fn runs_for_each(command: &Command) -> bool {
    matches!(command.name.as_str(), "find" | "gfind" | "fd" | "fdfind")
        && (command
            .texts()
            .any(|arg| matches!(arg, "-exec" | "-execdir" | "-x" | "-X" | "--exec" | "--exec-batch"))
            || command.piped_to.iter().any(|name| name == "xargs" || name == "parallel"))
}

fn forks_forever(command: &Command) -> bool {
    matches!(
        command.name.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.'),
        "perl" | "python" | "ruby" | "php"
    ) && command.texts().any(|arg| {
        let loops = ["while", "loop", "for ", "until"].iter().any(|word| arg.contains(word));
        arg.contains("fork") && loops && !arg.contains("wait")
    })
}
