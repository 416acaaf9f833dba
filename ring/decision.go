package ring

// Decision is what the policy says of one thing that an app asks beyond what every app
// may. Rules are stable names.
type Decision struct {
	Rule    string `json:"rule"`
	App     string `json:"app"`
	Service string `json:"service"` // "" for what belongs to the app as a whole
	Field   string `json:"field"`   // of what would be sent to the engine
	Value   string `json:"value"`   // fit to be shown
	Verdict string `json:"verdict"` // deny, power or note
	Grant   string `json:"grant"`   // file:line of the grant that lets it pass
	File    string `json:"file"`
	Line    int    `json:"line"`
	Risk    string `json:"risk"`
	Hint    string `json:"hint"` // of what is denied
}
