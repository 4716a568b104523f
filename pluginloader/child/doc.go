// Package child is what all programs of plugins have in common, whichever way they are spoken to: what they see of the
// environment of lashd, what they are held to, the log of what they say, how lines pass to and from them, how often they are
// started, and the errors of calls that they fail at.
package child
