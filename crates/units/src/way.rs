//! The two ways of traffic through a gateway, and values of both.

use std::fmt;
use std::ops::{Index, IndexMut};

/// A way through a link and its gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// From the first interface of a gateway to the second.
    Forward,
    /// From the second interface of a gateway to the first.
    Backward,
}

impl Way {
    /// Both, in their order.
    pub const ALL: [Self; 2] = [Self::Forward, Self::Backward];

    /// Name in files, messages and the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value of each way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BothWays<T> {
    /// Of the forward way.
    pub forward: T,
    /// Of the backward way.
    pub backward: T,
}

impl<T> BothWays<T> {
    /// Returns what `value` gives for each way, forward first.
    pub fn from_fn(mut value: impl FnMut(Way) -> T) -> Self {
        Self {
            forward: value(Way::Forward),
            backward: value(Way::Backward),
        }
    }

    /// Returns references to both values.
    pub const fn as_ref(&self) -> BothWays<&T> {
        BothWays {
            forward: &self.forward,
            backward: &self.backward,
        }
    }

    /// Returns references to both values, to change them.
    pub const fn as_mut(&mut self) -> BothWays<&mut T> {
        BothWays {
            forward: &mut self.forward,
            backward: &mut self.backward,
        }
    }

    /// Applies `change` to both values, forward first.
    pub fn map<U>(self, mut change: impl FnMut(T) -> U) -> BothWays<U> {
        BothWays {
            forward: change(self.forward),
            backward: change(self.backward),
        }
    }

    /// Applies `change` to both values, forward first.
    ///
    /// # Errors
    /// The first error of `change`.
    pub fn try_map<U, E>(
        self,
        mut change: impl FnMut(T) -> Result<U, E>,
    ) -> Result<BothWays<U>, E> {
        Ok(BothWays {
            forward: change(self.forward)?,
            backward: change(self.backward)?,
        })
    }

    /// Returns both values with those of `other`.
    pub fn zip<U>(self, other: BothWays<U>) -> BothWays<(T, U)> {
        BothWays {
            forward: (self.forward, other.forward),
            backward: (self.backward, other.backward),
        }
    }

    /// Visits both values with their ways, forward first.
    pub fn iter(&self) -> impl Iterator<Item = (Way, &T)> {
        self.as_ref().into_iter()
    }

    /// Visits both values with their ways, forward first, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Way, &mut T)> {
        self.as_mut().into_iter()
    }
}

impl<T> IntoIterator for BothWays<T> {
    type Item = (Way, T);
    type IntoIter = std::array::IntoIter<(Way, T), 2>;

    fn into_iter(self) -> Self::IntoIter {
        [(Way::Forward, self.forward), (Way::Backward, self.backward)].into_iter()
    }
}

impl<T> From<[T; 2]> for BothWays<T> {
    fn from([forward, backward]: [T; 2]) -> Self {
        Self { forward, backward }
    }
}

impl<T> Index<Way> for BothWays<T> {
    type Output = T;

    fn index(&self, way: Way) -> &T {
        match way {
            Way::Forward => &self.forward,
            Way::Backward => &self.backward,
        }
    }
}

impl<T> IndexMut<Way> for BothWays<T> {
    fn index_mut(&mut self, way: Way) -> &mut T {
        match way {
            Way::Forward => &mut self.forward,
            Way::Backward => &mut self.backward,
        }
    }
}
