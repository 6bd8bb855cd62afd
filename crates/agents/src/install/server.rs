//! Our entry among the MCP servers of a JSON file: `{"mcpServers": {"baton": {…}}}`. It is
//! recognised by its arguments. An entry of another program or another home is never touched. In
//! our own entry, only the keys that we write are updated; what a person added stays.

use serde_json::{Value, json};
use std::path::Path;

use super::hooks::Edited;
use super::{InstallError, SERVER, Server};
use crate::config::json::{Json, Made, Reader, Step, Tree};

const SERVERS: &str = "mcpServers";

/// The entry of one agent, or of all agents that read the file.
#[derive(Clone, Debug)]
pub struct JsonServer<'a> {
    /// The agent's name in `baton mcp --agent NAME`; `None` if several agents read the file, and
    /// the server finds out which agent started it.
    pub agent: Option<&'static str>,
    pub baton: &'a str,
    pub home: &'a str,
    /// The reader of the file.
    pub reader: &'a Reader,
}

/// The arguments with which our program is the MCP server of a session.
pub(crate) fn server_args(agent: &str, home: &str) -> Vec<String> {
    ["mcp", "--agent", agent, "--home", home].map(str::to_owned).to_vec()
}

/// The home in such arguments; `None` if they are of another kind.
pub(crate) fn home_in_args(agent: &str, args: &[&str]) -> Option<String> {
    match args {
        ["mcp", "--agent", a, "--home", home] if *a == agent => Some((*home).to_owned()),
        _ => None,
    }
}

/// The same for a server that finds out which agent started it. An entry that names one of those
/// agents comes from an older baton.
fn home_in_shared_args(args: &[&str]) -> Option<String> {
    match args {
        ["mcp", "--home", home] | ["mcp", "--agent", _, "--home", home] => Some((*home).to_owned()),
        _ => None,
    }
}

impl JsonServer<'_> {
    /// Who owns the current entry.
    pub fn owner(&self, path: &Path, bytes: &[u8]) -> Result<Server, InstallError> {
        let json = Json::parse(bytes, path, self.reader)?;
        Ok(match json.get(&way()) {
            Some(entry) if home_of(self.agent, &entry).as_deref() != Some(self.home) => Server::Others,
            _ => Server::Ours,
        })
    }

    /// Adds the entry, or updates it.
    pub fn install(&self, path: &Path, bytes: &[u8]) -> Result<Edited, InstallError> {
        let json = Json::parse(bytes, path, self.reader)?;
        json.unique(&[SERVERS, SERVER])?;
        let Some(old) = json.get(&way()) else {
            let entry = Tree::Value(self.entry());
            let tree = Tree::Keys(vec![(SERVERS.to_owned(), Tree::Keys(vec![(SERVER.to_owned(), entry)]))]);
            let (bytes, made) = json.add(&tree)?;
            return Ok(Edited { bytes, made, added: 1, updated: 0, dropped: 0 });
        };
        match home_of(self.agent, &old) {
            Some(home) if home == self.home => {}
            Some(home) => return Err(InstallError::OtherHome { place: json.place(&way()), home }),
            None => {
                let key = format!("{SERVERS}.{SERVER}");
                return Err(InstallError::NameTaken { place: json.place(&way()), key });
            }
        }
        let wanted = self.entry();
        let fields = wanted.as_object().into_iter().flatten();
        let stale: Vec<(&String, &Value)> = fields.filter(|(k, v)| old.get(k) != Some(v)).collect();
        let (present, absent): (Vec<_>, Vec<_>) = stale.into_iter().partition(|(k, _)| old.get(k).is_some());
        let values: Vec<(Vec<Step>, Value)> = present
            .iter()
            .map(|(key, value)| ([way(), vec![Step::Key((*key).clone())]].concat(), (*value).clone()))
            .collect();
        let bytes = json.replace(&values);
        let keys = absent.iter().map(|(key, value)| ((*key).clone(), Tree::Value((*value).clone())));
        let entry = Tree::Keys(keys.collect());
        let tree = Tree::Keys(vec![(SERVERS.to_owned(), Tree::Keys(vec![(SERVER.to_owned(), entry)]))]);
        let (bytes, _) = Json::parse(&bytes, path, self.reader)?.add(&tree)?;
        let updated = usize::from(!present.is_empty() || !absent.is_empty());
        Ok(Edited { bytes, made: Vec::new(), added: 0, updated, dropped: 0 })
    }

    /// Removes the entry, and returns how many there were. `None` means that the file is removed.
    pub fn remove(
        &self,
        path: &Path,
        bytes: &[u8],
        made: Made<'_>,
    ) -> Result<(Option<Vec<u8>>, usize), InstallError> {
        let json = Json::parse(bytes, path, self.reader)?;
        json.unique(&[SERVERS, SERVER])?;
        match json.get(&way()) {
            Some(entry) if home_of(self.agent, &entry).as_deref() == Some(self.home) => {
                Ok((json.cut(&[way()], made), 1))
            }
            _ => Ok((Some(bytes.to_vec()), 0)),
        }
    }

    pub fn entry(&self) -> Value {
        let args = match self.agent {
            Some(agent) => server_args(agent, self.home),
            None => ["mcp", "--home", self.home].map(str::to_owned).to_vec(),
        };
        json!({ "type": "stdio", "command": self.baton, "args": args })
    }
}

fn way() -> Vec<Step> {
    vec![Step::Key(SERVERS.to_owned()), Step::Key(SERVER.to_owned())]
}

fn home_of(agent: Option<&str>, entry: &Value) -> Option<String> {
    let args: Option<Vec<&str>> = entry.get("args")?.as_array()?.iter().map(Value::as_str).collect();
    agent.map_or_else(|| home_in_shared_args(args.as_deref()?), |agent| home_in_args(agent, args.as_deref()?))
}
