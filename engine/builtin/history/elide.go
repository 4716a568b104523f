package history

import (
	"context"
	"fmt"
	"slices"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

const (
	// Of the context, in percent: where shortening begins, and how far it goes then. The distance keeps the beginning of the
	// prompt as it is for several turns, so that a provider need not read it anew in each.
	full, roomy = 60, 40
	recent      = 2   // inputs since which nothing is shortened
	small       = 400 // bytes of an output that are not worth a word
)

// elide shortens what is old once the context is rather full.
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

// boundary is how many messages are to be short. It is found by going through the history turn by turn, as it came about:
// so it depends on nothing else, and moves only where the context was full.
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

// sums are the tokens of the first n messages, for each n.
func sums(messages []protocol.Message) []int64 {
	all := make([]int64, len(messages)+1)
	for i := range messages {
		all[i+1] = all[i] + tokens(&messages[i])
	}
	return all
}

// shortened is parts without what is big and can be had again. The parts themselves stay.
func shortened(parts []protocol.Part) []protocol.Part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		switch {
		case p.Prune != nil:
		case p.Attachment != nil:
			parts[i].Prune = cleared(fmt.Sprintf("[The attachment %s is not shown any more.]", p.Attachment.Name))
		case p.Result != nil && len(p.Result.Output.Text)+len(p.Result.Output.Value) > small:
			parts[i] = withoutOutput(p)
		}
	}
	return parts
}

func withoutOutput(p protocol.Part) protocol.Part {
	r := *p.Result
	note := fmt.Sprintf("[This call ended with %s. Its output, %d bytes, is not shown any more; call %s again if you need it.]",
		r.Output.Status, max(len(r.Output.Text), len(r.Output.Value)), r.Name)
	r.Output.Text, r.Output.Value = note, nil
	p.Result, p.Prune = &r, cleared(note)
	return p
}

func cleared(breadcrumb string) *protocol.Prune {
	return &protocol.Prune{State: protocol.PruneCleared, Breadcrumb: breadcrumb}
}
