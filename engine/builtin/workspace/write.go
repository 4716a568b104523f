package workspace

import (
	"bytes"
	"context"
	"fmt"

	"lashd/rpc/protocol"
)

// describeWrite is the description of write that the model reads.
const describeWrite = "Write a whole file of the workspace. Creates the file and its parent directories, or replaces its content. " +
	"Use edit to change a part of a file."

// writeArgs are the arguments of write.
// The schema of the tool is inferred from the struct.
type writeArgs struct {
	Path    string `json:"path" jsonschema:"file to write, relative to the workspace or absolute inside it"`
	Content string `json:"content" jsonschema:"the complete new content"`
}

// write is the write tool. It runs alone among the calls that change files.
// An error names the path as the model wrote it.
func (f *files) write(ctx context.Context, req request[writeArgs]) (out protocol.ToolOutput, err error) {
	err = f.exclusive(ctx, func() error {
		out, err = req.view.write(ctx, req)
		return err
	})
	if err != nil {
		return protocol.ToolOutput{}, fmt.Errorf("write %s: %w", req.args.Path, err)
	}
	return out, nil
}

// write replaces or creates a file. It reads the old content for the diff, and changes
// nothing if the content is the same. An existing file keeps its mode.
// It creates missing parent directories. Old and new content are limited to maxFile bytes.
func (v *view) write(ctx context.Context, req request[writeArgs]) (protocol.ToolOutput, error) {
	after := []byte(req.args.Content)
	if len(after) > maxFile {
		return protocol.ToolOutput{}, refuse("too_large", "the content has %d bytes; the limit is %d", len(after), maxFile)
	}
	at, err := v.locate(req.args.Path)
	if err != nil {
		return protocol.ToolOutput{}, err
	}
	c := create(at, after)
	defer func() { c.at.dir.close() }() // commit may replace it by a directory that it created
	if at.info != nil {
		before, err := v.content(at)
		if err != nil {
			return protocol.ToolOutput{}, err
		}
		if bytes.Equal(before, after) {
			return protocol.Succeed(at.path() + " already has this content."), nil
		}
		c = rewrite(at, before, after)
	}
	if err := commit(ctx, req.host, v, []*change{c}); err != nil {
		return protocol.ToolOutput{}, err
	}
	verb := "Created"
	if c.exists() {
		verb = "Replaced"
	}
	return changed(fmt.Sprintf("%s %s (%d lines).", verb, c.at.path(), len(lines(string(after)))), []*change{c})
}
