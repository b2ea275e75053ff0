//! Files of the transactions of runs, beside their records: one for each run, on request.

use crate::atomic::AtomicFile;
use crate::names::TRANSACTIONS_FOLDER;
use crate::{Action, ResultsError, ResultsFolder, open};
use slicewise_stats::path::run_components;
use slicewise_stats::record::RunKey;
use std::io;
use std::path::PathBuf;

impl ResultsFolder {
    /// The file of the transactions of a run, whether there is one or not.
    #[must_use]
    pub fn transactions_path(&self, key: &RunKey) -> PathBuf {
        let mut path = self.path().join(TRANSACTIONS_FOLDER);
        path.extend(run_components(key));
        path.with_extension("parquet")
    }

    /// Returns true if the transactions of a run lie in the folder.
    #[must_use]
    pub fn has_transactions(&self, key: &RunKey) -> bool {
        self.transactions_path(key).is_file()
    }

    /// Creates the folder of the transactions of a run, and returns the path of their file.
    ///
    /// # Errors
    /// Where the folder cannot be created; [`ResultsError::Gone`] where the results are not there any more.
    pub fn prepare_transactions(&self, key: &RunKey) -> Result<PathBuf, ResultsError> {
        self.check_in_place()?;
        let [policy, scenario, _] = run_components(key);
        self.create_folders(&[TRANSACTIONS_FOLDER, &policy, &scenario])?;
        Ok(self.transactions_path(key))
    }

    /// Copies the transactions of a run from `other`, unless they are here or not there. Returns true if it did.
    pub(crate) fn take_transactions(
        &self,
        other: &Self,
        key: &RunKey,
    ) -> Result<bool, ResultsError> {
        if self.has_transactions(key) {
            return Ok(false);
        }
        let from = other.transactions_path(key);
        let unread = |error| ResultsError::io(Action::Read, &from, io::Error::other(error));
        let Some(mut source) = open::regular(&from).map_err(unread)? else {
            return Ok(false);
        };
        let to = self.prepare_transactions(key)?;
        let mut file = AtomicFile::create(&to)?;
        io::copy(&mut source, &mut file)
            .map_err(|error| ResultsError::io(Action::Write, &to, error))?;
        file.commit()?;
        Ok(true)
    }
}
