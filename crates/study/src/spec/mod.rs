//! Values in a file, and how they are put together: one, a list, or a table by name.

mod containers;
mod scalar;
mod words;

pub(crate) use containers::{At, List, Named, OneOrMany, Short};
pub(crate) use scalar::{
    AtLeastOne, Fraction, MAX_NAME_LENGTH, NUMBER, Name, NumberRange, PartsPerMillion, PassingRate,
    Percent, Positive, Reference, Repetitions, SIZE_UNITS, Scalar, Share, TIME_UNITS, Verbatim,
    narrowed, number, percent_digits, scalars,
};
pub use words::code_point;
pub(crate) use words::{
    ApplicationKind, AxisName, Borrows, Counted, Dscp, EtherType, Figure, PatternName, PlainAction,
    PopulationPattern, Protocol, Spacing, TransportProtocol, Weights, Words, word_for,
};
