package prompt

// killed is the text that the last kills deleted, for yank.
type killed struct {
	text    text // empty: there is none
	growing bool // the last key was a kill, so another one adds to the text
}

// add keeps a deleted text: back says that it was before the cursor. One kill after
// another adds to the kept text.
func (k *killed) add(t text, back bool) {
	switch {
	case !k.growing || len(k.text) == 0:
		k.text = t
	case back:
		k.text = t.followed(k.text)
	default:
		k.text = k.text.followed(t)
	}
}
