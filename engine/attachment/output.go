package attachment

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"lashd/engine/param"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Output returns a tool result with checked attachments, and the blobs that the commit of the result must store. It fails if one of the
// attachments is not allowed; use it if the sender of the result can still correct it. Every kind passes, because a result is worth
// more than its files: a model that does not take one gets a note.
func (p Policy) Output(ctx context.Context, id protocol.SessionID, out protocol.ToolOutput) (protocol.ToolOutput, []persistence.Blob, error) {
	if len(out.Attachments) == 0 {
		return out, nil, nil
	}
	u, err := p.use(ctx, id)
	if err != nil {
		return out, nil, err
	}
	u.Model = nil
	c := check{Policy: p, Use: u, root: "/output"}
	all := make([]*protocol.Attachment, len(out.Attachments))
	for i := range out.Attachments {
		if all[i], err = c.one(ctx, outputPointer(i), &out.Attachments[i]); err != nil {
			return out, nil, err
		}
	}
	blobs, err := c.store()
	out.Attachments = values(all)
	return out, blobs, err
}

// outputPointer returns the JSON pointer of an attachment of a result.
func outputPointer(i int) string { return "/output/attachments/" + strconv.Itoa(i) }

// Keeper checks what tools and plugins of one session return after they have run, when it is too late to refuse it. It removes
// attachments that are not allowed or cannot be stored, and says so in the text. It stores the others, even if ctx is done.
type Keeper struct {
	Policy
	Session int64                                           // key of the session
	Commit  func(context.Context, []persistence.Blob) error // stores blobs of the session
}

// Output returns a result with the attachments that are allowed.
func (k Keeper) Output(ctx context.Context, out protocol.ToolOutput) protocol.ToolOutput {
	if len(out.Attachments) == 0 {
		return out
	}
	ctx = context.WithoutCancel(ctx)
	c := k.check()
	given, text := out.Attachments, out.Text
	var all []*protocol.Attachment
	for i := range given {
		if a, err := c.one(ctx, outputPointer(i), &given[i]); err == nil {
			all = append(all, a)
		} else {
			out.Text = noted(out.Text, &given[i], err)
		}
	}
	if err := k.keep(ctx, &c); err != nil {
		all, out.Text = nil, text
		for i := range given {
			out.Text = noted(out.Text, &given[i], err)
		}
	}
	out.Attachments = values(all)
	return out
}

// Changed is Output for a result that a plugin made of another one, whose attachments are checked already.
func (k Keeper) Changed(ctx context.Context, was *protocol.ToolOutput, out protocol.ToolOutput) protocol.ToolOutput {
	if reflect.DeepEqual(was.Attachments, out.Attachments) {
		return out
	}
	return k.Output(ctx, out)
}

// Messages returns messages with the attachments that are allowed. A text takes the place of each other one.
func (k Keeper) Messages(ctx context.Context, messages []protocol.Message) []protocol.Message {
	ctx = context.WithoutCancel(ctx)
	messages = slices.Clone(messages)
	for i := range messages {
		if hasFiles(&messages[i]) {
			messages[i].Parts = k.parts(ctx, messages[i].Parts)
		}
	}
	return messages
}

// parts returns the parts of a message with the attachments that are allowed.
func (k Keeper) parts(ctx context.Context, given []protocol.Part) []protocol.Part {
	c := k.check()
	parts := slices.Clone(given)
	for i := range parts {
		if parts[i].Attachment == nil {
			continue
		}
		a, err := c.one(ctx, "/parts/"+strconv.Itoa(i)+"/attachment", parts[i].Attachment)
		if err == nil {
			parts[i].Attachment = a
		} else {
			parts[i] = note(parts[i].Attachment, err)
		}
	}
	if err := k.keep(ctx, &c); err != nil {
		for i, part := range given {
			if part.Attachment != nil {
				parts[i] = note(part.Attachment, err)
			}
		}
	}
	return parts
}

// check returns a check for the session. Any model may get the attachments.
func (k Keeper) check() check {
	return check{Policy: k.Policy, Use: Use{Sessions: []int64{k.Session}}, root: "/output"}
}

// keep stores the large attachments of a check.
func (k Keeper) keep(ctx context.Context, c *check) error {
	blobs, err := c.store()
	if err != nil || len(blobs) == 0 {
		return err
	}
	return k.Commit(ctx, blobs)
}

// note is the part that says which attachment was removed from a message.
func note(a *protocol.Attachment, err error) protocol.Part {
	return protocol.Part{Kind: protocol.PartText, Text: noted("", a, err)}
}

// noted returns the text of a result with a line about an attachment that was removed. Of more than MaxCount, only the first ones
// get a line.
func noted(text string, a *protocol.Attachment, err error) string {
	if strings.Count(text, removed) >= MaxCount {
		return text
	}
	return strings.TrimPrefix(fmt.Sprintf("%s\n%s%.100q: %.300s]", text, removed, a.Name, reason(err)), "\n")
}

// reason returns an error without the pointer to its parameter, which means nothing to the model.
func reason(err error) string {
	if e, ok := errors.AsType[*param.Error](err); ok {
		return "it " + e.Reason
	}
	return err.Error()
}

// removed begins each such line.
const removed = "[lashd removed the attachment "

// values returns the attachments themselves, nil for none.
func values(all []*protocol.Attachment) (out []protocol.Attachment) {
	for _, a := range all {
		out = append(out, *a)
	}
	return out
}
