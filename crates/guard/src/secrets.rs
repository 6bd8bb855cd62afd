//! What counts as a secret: names of variables and of files.

use crate::path;
use crate::tables::credentials::HOME_PATHS;

/// Whether a variable's name says that its value is a secret.
pub fn is_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    const WORDS: &[&str] = &[
        "SECRET",
        "TOKEN",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "PRIVATE_KEY",
        "APIKEY",
        "API_KEY",
        "ACCESS_KEY",
        "AUTH_KEY",
        "PWD_HASH",
        "DATABASE_URL",
        "ENCRYPTION_KEY",
        "SIGNING_KEY",
        "MASTER_KEY",
        "CONNECTION_STRING",
        "DSN",
        "SESSION_KEY",
        "COOKIE",
    ];
    if matches!(upper.as_str(), "PWD" | "OLDPWD" | "SSH_AUTH_SOCK" | "GPG_TTY" | "XAUTHORITY") {
        return false;
    }
    if says_something_about_one(&upper) {
        return false;
    }
    if WORDS.iter().any(|word| upper.contains(word)) {
        return true;
    }
    upper.split('_').any(|part| matches!(part, "KEY" | "PASS" | "AUTH" | "PAT" | "PWD" | "CREDS" | "JWT"))
        && !matches!(upper.as_str(), "KEY" | "PASS" | "PAT")
        || upper.ends_with("_KEY")
}

/// Whether a name is that of a number, a path or a type: `MAX_TOKENS`, `SSH_KEY_PATH`,
/// `PUBLIC_KEY`.
fn says_something_about_one(upper: &str) -> bool {
    const ENDINGS: &[&str] = &["COUNT", "LIMIT", "LENGTH", "SIZE", "TTL", "TYPE", "PATH", "DIR", "FILE"];
    const COUNTED: &[&str] =
        &["MAX", "MIN", "NUM", "N", "TOTAL", "INPUT", "OUTPUT", "PROMPT", "COMPLETION", "NEW", "CONTEXT"];
    let parts: Vec<&str> = upper.split('_').collect();
    match &parts[..] {
        ["TOKENS"] | [.., "PUBLIC", "KEY"] | [.., "GPG" | "PGP" | "SIGNING", "KEY", "ID"] => true,
        [before @ .., "TOKENS"] => before.iter().all(|part| COUNTED.contains(part)),
        [.., last] if parts.len() > 1 && ENDINGS.contains(last) => true,
        _ => {
            let left = upper.replace("TOKENIZER", "").replace("TOKENIZE", "").replace("TOKENIZATION", "");
            left.len() < upper.len() && !is_secret_name(&left)
        }
    }
}

/// Whether a file's name is that of a file with environment variables.
pub fn is_env_file(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    if lower == ".env" || lower == ".envrc" {
        return true;
    }
    let Some(rest) = lower.strip_prefix(".env.").or_else(|| lower.strip_prefix(".envrc.")) else {
        return false;
    };
    !["example", "sample", "template", "dist", "schema", "defaults", "tmpl", "md"]
        .iter()
        .any(|word| rest.split('.').any(|part| part == *word))
}

/// Whether people keep keys and credentials at a path. `home` is their home.
pub fn is_secret_path(path: &str, home: &str) -> bool {
    let name = path::file_name(path);
    let lower = name.to_ascii_lowercase();
    let home = path::join("/", home);
    // The path relative to each home that it is in. It is computed once and compared with many
    // folders.
    let inside = |home: &str| path.strip_prefix(home.trim_end_matches('/'))?.strip_prefix('/');
    let others = path.strip_prefix("/home/").or(path.strip_prefix("/Users/"));
    let another = others.and_then(|rest| rest.split_once('/')).map(|(_, rest)| rest);
    let from_homes = [inside(&home), another, inside("/root")];
    let in_home = |folder: &str| {
        let is_there = |rest: &str| {
            rest.strip_prefix(folder).is_some_and(|left| left.is_empty() || left.starts_with('/'))
        };
        from_homes.into_iter().flatten().any(is_there)
    };
    if in_home(".ssh") {
        return !(lower.ends_with(".pub")
            || matches!(lower.as_str(), "known_hosts" | "config" | "authorized_keys" | ".ssh"));
    }
    if name.starts_with("id_") && ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"].contains(&name) {
        return true;
    }
    if HOME_PATHS.iter().any(|file| in_home(file)) {
        return true;
    }
    matches!(
        path,
        "/etc/shadow" | "/etc/gshadow" | "/etc/sudoers" | "/etc/master.passwd" | "/etc/krb5.keytab"
    ) || path::is_below(path, "/etc/ssl/private")
        || matches!(
            path,
            "/etc/kubernetes/admin.conf" | "/etc/rancher/k3s/k3s.yaml" | "/etc/rancher/rke2/rke2.yaml"
        )
        || (path::is_below(path, "/etc/ssh") && lower.starts_with("ssh_host_") && lower.ends_with("_key"))
        || (path::is_below(path, "/etc/letsencrypt") && lower.starts_with("privkey"))
        || (path::is_below(path, "/run/user") && path.ends_with("/containers/auth.json"))
        || matches!(lower.as_str(), "master.key" | "privkey.pem" | "serviceaccountkey.json" | ".vault_pass")
        || path::is_below(path, "/run/secrets")
        || path::is_below(path, "/var/run/secrets")
        || path::is_below(path, "/Library/Keychains")
        || matches!(lower.as_str(), ".netrc" | ".pgpass" | ".git-credentials" | ".vault-token")
        || ((lower.ends_with(".kdbx")
            || lower.ends_with(".keychain-db")
            || lower.ends_with(".keychain")
            || lower.ends_with(".ppk"))
            && !lower.starts_with('*'))
        || (path.contains("/.aws/") && lower == "credentials")
}

/// Whether keys and credentials are written to a path.
pub fn is_secret_target(path: &str, home: &str) -> bool {
    let name = path::file_name(path).to_ascii_lowercase();
    const ENDINGS: &[&str] =
        &[".pem", ".key", ".p12", ".pfx", ".keystore", ".jks", ".kdbx", ".ppk", ".asc.key", ".p8", ".jceks"];
    const NAMES: &[&str] = &[
        "credentials",
        "credentials.json",
        "credentials.yml",
        "credentials.yaml",
        "credentials.toml",
        "credentials.xml",
        ".credentials.json",
        "secrets.json",
        "secrets.yml",
        "secrets.yaml",
        "secrets.toml",
        "secret.json",
        "secret.yaml",
        "secret.yml",
        "service-account.json",
        "serviceaccount.json",
        "service_account.json",
        "client_secret.json",
        "token.json",
        "auth.json",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        ".htpasswd",
        ".pgpass",
        ".netrc",
        ".git-credentials",
        ".vault-token",
        "keyfile.json",
        "application_default_credentials.json",
        "master.key",
        ".dockercfg",
        "htpasswd",
    ];
    ENDINGS.iter().any(|ending| name.ends_with(ending))
        || NAMES.contains(&name.as_str())
        || (name.starts_with("id_")
            && ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"].iter().any(|key| name.starts_with(key))
            && !name.ends_with(".pub"))
        || is_secret_path(path, home)
}

/// Whether a text holds a private key.
pub fn holds_private_key(text: &str) -> bool {
    text.match_indices("-----BEGIN ").any(|(at, _)| {
        let line: String =
            text.get(at..).unwrap_or("").chars().take(64).take_while(|sign| *sign != '\n').collect();
        line.contains("PRIVATE KEY")
    })
}
