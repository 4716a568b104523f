package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// offer is a tool of the plugin and its implementation.
type offer struct {
	tool tool.Tool
	do   func(*shell, context.Context, tool.Invocation) protocol.ToolOutput
}

// offers are the tools, in the order in which the model sees them.
var offers = sync.OnceValue(func() []offer {
	return []offer{
		offered("shell", describe, protocol.ToolKindExecute, protocol.ToolContract{Replay: protocol.ReplayNever}, (*shell).command),
		like("shell", offered("start_command", describeStart, protocol.ToolKindExecute, protocol.ToolContract{Replay: protocol.ReplayIdempotent}, (*shell).startCommand)),
		like("shell", offered("write_stdin", describeWrite, protocol.ToolKindExecute, protocol.ToolContract{Replay: protocol.ReplayNever, Serial: true}, (*shell).writeStdin)),
		offered("read_output", describeRead, protocol.ToolKindRead, protocol.ToolContract{Replay: protocol.ReplaySafe}, (*shell).readOutput),
		offered("list_processes", describeList, protocol.ToolKindRead, protocol.ToolContract{Replay: protocol.ReplaySafe}, (*shell).listProcesses),
		offered("stop_command", describeStop, protocol.ToolKindExecute, protocol.ToolContract{Replay: protocol.ReplayIdempotent}, (*shell).stopCommand),
	}
})

// offered returns a tool whose schema is inferred from the type of its arguments.
func offered[A any](name, text string, kind protocol.ToolKind, contract protocol.ToolContract,
	do func(*shell, context.Context, tool.Invocation, A) protocol.ToolOutput,
) offer {
	schema, err := jsonschema.For[A](nil)
	if err != nil {
		panic("schema of " + name + ": " + err.Error()) // cannot happen: the type is one of this package
	}
	input, err := json.Marshal(schema)
	if err != nil {
		panic("schema of " + name + ": " + err.Error())
	}
	manifest := protocol.ToolManifest{Name: name, Description: text, Input: input, Kind: kind}
	return offer{tool.Tool{Manifest: manifest, Contract: contract}, func(s *shell, ctx context.Context, call tool.Invocation) protocol.ToolOutput {
		var a A
		if err := decode(call.Args, &a); err != nil {
			return rejected("invalid_arguments", fmt.Sprintf("arguments of %s: %v", name, err))
		}
		return do(s, ctx, call, a)
	}}
}

// like marks a tool as one that can run the same commands as another tool. Approval rules
// for the other tool apply to it too.
func like(name string, o offer) offer {
	o.tool.Manifest.Like = name
	return o
}

// decode decodes arguments strictly: no unknown fields and nothing after the object.
func decode(data json.RawMessage, a any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(a); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

// Tools implements tool.Provider.
func (s *shell) Tools() []tool.Tool {
	var all []tool.Tool
	for _, o := range offers() {
		all = append(all, o.tool)
	}
	return all
}

// Execute implements tool.Provider.
func (s *shell) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	for _, o := range offers() {
		if o.tool.Manifest.Name == call.Name {
			out := o.do(s, ctx, call)
			return tool.Result{Output: out, Refused: out.Refusal}, nil
		}
	}
	return tool.Result{}, fmt.Errorf("shell: no tool %q", call.Name)
}

// rejected returns the failure of a call with invalid arguments or a rejected request.
func rejected(code, message string) protocol.ToolOutput {
	return protocol.Fail(protocol.FailInvalidRequest, code, message, protocol.FromTool)
}
