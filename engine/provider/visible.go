package provider

import (
	"slices"

	"lashd/rpc/protocol"
)

// VisibleTexts returns pointers to the non-empty texts of a chunk that people read, so that the
// caller can replace them. It copies a part first, because providers may keep theirs.
func (c *Chunk) VisibleTexts() []*string {
	texts := []*string{&c.Commentary, &c.Text}
	if Visible(c.Part) {
		part := *c.Part
		c.Part = &part
		texts = append(texts, &part.Text)
	}
	return slices.DeleteFunc(texts, func(text *string) bool { return *text == "" })
}

// Visible reports whether people read the part's text as an answer or commentary.
func Visible(p *protocol.Part) bool {
	return p != nil && (p.Kind == protocol.PartProse || p.Kind == protocol.PartCommentary)
}
