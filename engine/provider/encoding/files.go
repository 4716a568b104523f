package encoding

import (
	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// Files gives the writers of one request the contents of attachments. It reads stored contents when a message is written, so
// messages that are encoded already cost nothing. It belongs to one call and is not safe for concurrent use.
type Files struct {
	model *protocol.ModelSpec                   // decides which types are sent
	noURL bool                                  // a note takes the place of an attachment by URL
	load  func(protocol.Digest) ([]byte, error) // nil: no attachment of the request has only a digest
	err   error                                 // the first read that failed
}

// FilesOf returns the files of a request.
func FilesOf(req *provider.Request) *Files {
	return &Files{model: &req.Model, noURL: req.DenyURLs, load: req.Contents}
}

// read returns the contents of an attachment; nil if it has none, or if they cannot be read.
// After a failed read it reads no more. Failed reports the error.
func (f *Files) read(a *protocol.Attachment) []byte {
	if a.Digest == "" || f.load == nil || f.err != nil {
		return a.Data
	}
	data, err := f.load(a.Digest)
	f.err = err
	return data
}

// Failed returns an error if contents could not be read, and drops the conversation from h, which then has an incomplete message.
// Call it after the last message is written. After an error the request must not be sent.
func (f *Files) Failed(h *History, key Key, messages []*protocol.Message) error {
	if f.err == nil {
		return nil
	}
	h.Forget(key, messages)
	return &provider.Error{Kind: provider.KindUnknown, Code: "attachment_unreadable", Message: f.err.Error(), Err: f.err}
}
