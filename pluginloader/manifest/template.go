package manifest

// Piece is a part of an element of a tool's command: a text, in which variables are still to be put in, or a parameter.
type Piece struct{ Text, Parameter string }

// placeholder is a parameter of a command, or the text of one.
var placeholder = lazy(`\{\{([A-Za-z][A-Za-z0-9_]*)\}\}|\{([A-Za-z][A-Za-z0-9_]*)\}`)

// Pieces takes an element of a command apart. Together the pieces are the element as it runs, {{name}} being {name} by then.
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
