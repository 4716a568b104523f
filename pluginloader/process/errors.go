package process

import "lashd/pluginloader/child"

// Errors of calls are the same for all kinds of plugin programs.
type (
	Code  = child.Code
	Error = child.Error
)

// Codes of an Error.
const (
	Crashed     = child.Crashed
	TimedOut    = child.TimedOut
	Protocol    = child.Protocol
	Failed      = child.Failed
	Quarantined = child.Quarantined
	Stopped     = child.Stopped
	Modified    = child.Modified
)

// maxMessage is the maximum length in bytes of a plugin's text in an error.
const maxMessage = 4000
