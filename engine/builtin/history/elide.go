package history

import (
	"context"
	"fmt"
	"slices"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

const (
	// full and roomy are percentages of the context: shortening starts at full and continues down to roomy. The distance
	// keeps the beginning of the prompt unchanged for several turns, so that the provider's prompt cache stays useful.
	full, roomy = 60, 40
	recent      = 2   // the newest inputs, after which nothing is shortened
	small       = 400 // bytes; outputs up to this size are not shortened
)

// elide shortens old outputs and attachments when the context fills up. It is a context
// transform: it changes what the model sees, not the stored history.
func elide(_ context.Context, view *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
	if view.View == nil || view.View.Window <= 0 {
		return pc, nil
	}
	short := slices.Clone(pc.Messages)
	for i := range short {
		short[i].Parts = shortened(short[i].Parts)
	}
	n := boundary(pc.Messages, short, view.View.Window)
	pc.Messages = slices.Concat(short[:n], pc.Messages[n:])
	return pc, nil
}

// boundary returns the number of messages to shorten. It replays the history turn by turn,
// so the result depends only on the history and moves only where the context was full. That
// keeps the beginning of the prompt stable.
func boundary(whole, short []protocol.Message, window int64) int {
	long, brief := sums(whole), sums(short)
	at := 0
	size := func(end int) int64 { return brief[at] + long[end] - long[at] }
	starts := inputs(whole)
	for i, end := range append(slices.Clip(starts), len(whole)) {
		if i < recent || size(end)*100 < window*full {
			continue
		}
		for at < starts[i-recent] && size(end)*100 > window*roomy {
			at++
		}
	}
	return at
}

// sums returns the tokens of the first n messages, for each n.
func sums(messages []protocol.Message) []int64 {
	all := make([]int64, len(messages)+1)
	for i := range messages {
		all[i+1] = all[i] + tokens(&messages[i])
	}
	return all
}

// shortened returns parts with large outputs and attachments replaced by a note. The number
// of parts stays the same, so calls and results still match.
func shortened(parts []protocol.Part) []protocol.Part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		switch {
		case p.Prune != nil:
		case p.Attachment != nil:
			parts[i].Prune = cleared(fmt.Sprintf("[The attachment %s is no longer shown.]", p.Attachment.Name))
		case p.Result != nil && len(p.Result.Output.Text)+len(p.Result.Output.Value) > small, p.Result != nil && len(p.Result.Output.Attachments) > 0:
			parts[i] = withoutOutput(p)
		}
	}
	return parts
}

// withoutOutput replaces the output of a call by a note that tells the model how to get it
// again.
func withoutOutput(p protocol.Part) protocol.Part {
	r := *p.Result
	note := fmt.Sprintf("[This call ended with %s. Its output (%d bytes) is no longer shown; call %s again if you need it.]",
		r.Output.Status, max(len(r.Output.Text), len(r.Output.Value)), r.Name)
	r.Output.Text, r.Output.Value, r.Output.Attachments = note, nil, nil
	p.Result, p.Prune = &r, cleared(note)
	return p
}

// cleared marks a part as shortened, with the note that stands for it.
func cleared(breadcrumb string) *protocol.Prune {
	return &protocol.Prune{State: protocol.PruneCleared, Breadcrumb: breadcrumb}
}
