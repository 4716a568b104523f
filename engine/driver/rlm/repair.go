package rlm

import "fmt"

// repairText names the problem of a reply to the model and says what to write instead.
func repairText(what decision, language string, o options) string {
	form := fmt.Sprintf("Write the line <%s>, then the code, then the line </%s>. Each tag is alone on its line.", language, language)
	end := fmt.Sprintf("This turn ends only when a code cell calls finish(value).%s", o.schemaText())
	switch what {
	case unclosedCell:
		return fmt.Sprintf("Nothing was run: your code cell has no closing line </%s>. Write the whole cell again. %s", language, form)
	case cutCell:
		return "Nothing was run: your reply reached the output limit inside the code cell. Write a shorter cell, and do the rest in later cells. " + form
	case cutProse:
		if o.mustFinish() {
			return "Your reply reached the output limit before its code cell. Write less text before the cell. " + form
		}
		return "Your reply reached the output limit before its end. Write the reply again, and keep it shorter."
	case foreignCell:
		text := fmt.Sprintf("Nothing was run: your reply has code, but not between the tags of a code cell. To run code: %s", form)
		if o.mustFinish() {
			return text
		}
		return text + " If the code is your answer and not to be run, write it again with a sentence of text before it."
	case malformedCell:
		return "Nothing was run: your reply has tags or code, but no valid code cell. " + form + " " + end
	case askForFinish:
		return "Your reply has no code cell. " + form + " " + end
	}
	return ""
}
