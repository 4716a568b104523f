// Package child is what all programs of plugins have in common, whichever way they are spoken to: what they see of the
// environment of lashd, and the log of what they say.
package child
