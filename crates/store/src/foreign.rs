//! Databases of other programs: opened for reading only, with a short wait.

use crate::failure::failure;
use baton_core::Error;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// How long to wait for a writer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// Calls `each` with the first column of each row of a query that takes one number.
pub fn rows(file: &Path, query: &str, number: i64, mut each: impl FnMut(&str)) -> Result<(), Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(file, flags).map_err(failure)?;
    conn.busy_timeout(BUSY_TIMEOUT).map_err(failure)?;
    let mut statement = conn.prepare(query).map_err(failure)?;
    let mut rows = statement.query([number]).map_err(failure)?;
    while let Some(row) = rows.next().map_err(failure)? {
        each(&row.get::<_, String>(0).map_err(failure)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_nothing_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("theirs.db");
        assert!(rows(&file, "SELECT 1", 0, |_| {}).is_err());
        assert!(!file.exists());
        let conn = Connection::open(&file).unwrap();
        conn.execute_batch(
            "CREATE TABLE t (at INTEGER, word TEXT); INSERT INTO t VALUES (1, 'old'), (5, 'new')",
        )
        .unwrap();
        let mut found = Vec::new();
        rows(&file, "SELECT word FROM t WHERE at >= ?1", 3, |row| found.push(row.to_owned())).unwrap();
        assert_eq!(found, ["new"]);
    }
}
