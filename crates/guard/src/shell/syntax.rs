//! The syntax tree of a shell text. It borrows from the text and resolves nothing.

use std::borrow::Cow;

/// Commands one after another.
#[derive(Debug, Default)]
pub struct List<'s> {
    /// In the order of the text.
    pub items: Vec<Item<'s>>,
}

/// A pipeline, and how it ends.
#[derive(Debug)]
pub struct Item<'s> {
    /// The commands that are joined by pipes.
    pub stages: Vec<Node<'s>>,
    /// Whether `&` follows.
    pub background: bool,
    /// Whether what follows runs only if this succeeds, or only if it fails.
    pub then: Then,
}

/// What decides whether the next item runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Nothing: it always runs.
    Always,
    /// `&&`.
    OnSuccess,
    /// `||`.
    OnFailure,
}

/// One command of a pipeline.
#[derive(Debug)]
pub struct Node<'s> {
    pub kind: NodeKind<'s>,
    pub redirects: Vec<Redirect<'s>>,
}

/// The forms of a command.
#[derive(Debug)]
pub enum NodeKind<'s> {
    /// Assignments and words.
    Simple {
        /// Before the words.
        assignments: Vec<Assignment<'s>>,
        /// The command's name and arguments.
        words: Vec<Word<'s>>,
    },
    /// `{ }`, or the parts of `while` and `until`, in their order.
    Group(Vec<List<'s>>),
    /// `if`: each condition with what runs if it is true, and what runs if none is.
    If {
        branches: Vec<(List<'s>, List<'s>)>,
        /// The rest.
        otherwise: Option<List<'s>>,
    },
    /// `( )`.
    Subshell(List<'s>),
    /// `for` and `select`.
    For {
        name: &'s str,
        /// Its values; `None` for the arguments.
        values: Option<Vec<Word<'s>>>,
        /// What runs.
        body: List<'s>,
    },
    /// `case`.
    Case {
        /// What is compared.
        subject: Word<'s>,
        /// What may run.
        branches: Vec<List<'s>>,
    },
    /// A function, with the text of its body.
    Function {
        name: &'s str,
        /// The whole of its body.
        body: &'s str,
    },
    /// `[[ ]]` and `(( ))`, of which only the expansions matter.
    Test(Vec<Word<'s>>),
}

/// `name=value`.
#[derive(Debug)]
pub struct Assignment<'s> {
    pub name: &'s str,
    /// What is in the brackets of `name[…]=value`.
    pub index: Option<&'s str>,
    /// `+=`.
    pub append: bool,
    /// One word, or the elements of an array.
    pub values: Vec<Word<'s>>,
}

#[derive(Debug)]
pub struct Redirect<'s> {
    /// The descriptor, if it is named.
    pub fd: Option<u32>,
    pub op: RedirectOp,
    /// The file, the descriptor or the text.
    pub target: Target<'s>,
}

/// The target or source of a redirection.
#[derive(Debug)]
pub enum Target<'s> {
    Word(Word<'s>),
    /// The here-document of this number.
    Here(usize),
}

/// The kinds of redirections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectOp {
    /// `<`
    Read,
    /// `>`, `>|`
    Write,
    /// `>>`
    Append,
    /// `<>`
    ReadWrite,
    /// `&>`, and `>&` with a file.
    WriteBoth,
    /// `&>>`
    AppendBoth,
    /// `<&`, `>&` with a descriptor.
    Duplicate,
    /// `<<`
    HereDocument,
    /// `<<<`
    HereString,
}

/// A word before expansion.
#[derive(Debug)]
pub enum Word<'s> {
    /// Nothing in it is quoted or expanded except globs, braces and a tilde.
    Plain(&'s str),
    /// A word made of parts.
    Parts(Vec<Part<'s>>),
}

/// A part of a word.
#[derive(Debug)]
pub enum Part<'s> {
    /// Unquoted text.
    Bare(&'s str),
    Quoted(Cow<'s, str>),
    /// A double-quoted text.
    Double(Vec<Part<'s>>),
    /// `$x`, `${x…}`.
    Param(Box<Param<'s>>),
    /// `$( )`.
    Command(List<'s>),
    /// Backticks, with their text after unescaping.
    Backticks(Cow<'s, str>),
    /// `<( )`, `>( )`.
    Process {
        list: List<'s>,
        /// Whether it is `<( )`, so that its output is read.
        is_input: bool,
    },
    /// `$(( ))`: a number, and what is expanded in it.
    Arithmetic(Vec<Part<'s>>),
}

/// An expansion of a variable.
#[derive(Debug)]
pub struct Param<'s> {
    pub name: &'s str,
    /// `[…]` after the name.
    pub index: Option<&'s str>,
    /// `${#x}`.
    pub length: bool,
    /// `${!x}`.
    pub indirect: bool,
    /// The operator and its word.
    pub op: Option<(ParamOp, Word<'s>)>,
}

/// The operators of an expansion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamOp {
    /// `:-`, `-`, `:=`, `=`
    Default,
    /// `:+`, `+`
    Alternative,
    /// `:?`, `?`
    Require,
    /// `#`
    CutFront,
    /// `##`
    CutFrontLongest,
    /// `%`
    CutBack,
    /// `%%`
    CutBackLongest,
    /// `/`
    Replace,
    /// `//`
    ReplaceAll,
    /// `:offset:length`
    Slice,
    /// `^`
    Upper,
    /// `,`
    Lower,
    /// `@`, `*`
    Other,
}

#[derive(Debug, Default)]
pub struct Here<'s> {
    /// Its text, with expansions unless the delimiter was quoted.
    pub parts: Vec<Part<'s>>,
}

/// A parsed text.
#[derive(Debug, Default)]
pub struct Script<'s> {
    pub list: List<'s>,
    pub heres: Vec<Here<'s>>,
}
