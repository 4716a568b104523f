package manifest

// Piece is a part of one element of a tool's command: literal text, which may contain variables, or
// a parameter.
type Piece struct{ Text, Parameter string }

// placeholder matches {{name}}, the literal text {name}, and {name}, a parameter.
var placeholder = lazy(`\{\{([A-Za-z][A-Za-z0-9_]*)\}\}|\{([A-Za-z][A-Za-z0-9_]*)\}`)

// Pieces splits an element of a command. In the pieces, {{name}} has become the literal text
// {name}.
func Pieces(element string) []Piece {
	var pieces []Piece
	var text string
	from := 0
	for _, m := range placeholder().FindAllStringSubmatchIndex(element, -1) {
		text += element[from:m[0]]
		from = m[1]
		switch {
		case m[2] >= 0:
			text += element[m[0]+1 : m[1]-1]
		case m[0] > 0 && element[m[0]-1] == '$': // a variable
			text += element[m[0]:m[1]]
		default:
			if text != "" {
				pieces = append(pieces, Piece{Text: text})
			}
			pieces = append(pieces, Piece{Parameter: element[m[4]:m[5]]})
			text = ""
		}
	}
	if text += element[from:]; text != "" || len(pieces) == 0 {
		pieces = append(pieces, Piece{Text: text})
	}
	return pieces
}
