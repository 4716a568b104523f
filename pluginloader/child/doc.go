// Package child holds the code that all kinds of plugin programs share: their environment, sandbox and limits, the log of their
// output, reading and writing lines, restarts, and the errors of failed calls.
package child
