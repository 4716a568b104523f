package process

import "lashd/pluginloader/child"

// What a call of a plugin fails with is the same for all programs of plugins.
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

// maxMessage is where a plugin's words are cut in an error.
const maxMessage = 4000
