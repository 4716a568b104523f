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
func (f *files) write(ctx context.Context, req request[writeArgs]) (protocol.ToolOutput, error) {
	out, err := f.change(ctx, req.view, req.host, func(p *plan) error { return p.write(req.args) })
	return out, explained("write", req.args.Path, err)
}

// write plans to replace or create a file. It reads the old content for the diff, and plans no
// change if the content is the same. An existing file keeps its mode.
// Missing parent directories are created. Old and new content are limited to maxFile bytes.
func (p *plan) write(a writeArgs) error {
	after := []byte(a.Content)
	if len(after) > maxFile {
		return refuse("too_large", "the content has %d bytes; the limit is %d", len(after), maxFile)
	}
	c, err := p.at(a.Path)
	if err != nil {
		return err
	}
	c.after = after
	verb := "Created"
	if c.exists() {
		if err := p.read(c); err != nil {
			return err
		}
		if bytes.Equal(c.before, after) {
			p.say("%s already has this content.", c)
			p.drop()
			return nil
		}
		verb = "Replaced"
	}
	p.said = append(p.said, fmt.Sprintf("%s %s (%d lines).", verb, c.at.path(), len(lines(a.Content))))
	return nil
}
