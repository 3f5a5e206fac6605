// Requests that show what the bundled model can do; the page opens with the first.

export const EXAMPLES = [
  "remind me to text grace tonight",
  "will it rain in oslo on sunday",
  "find events near my parents' house this weekend",
  "text mom that i will be home by six",
  "what time should i leave to get to my mom's house by 5 pm",
  "how far is the nearest coffee shop from my office",
  "wake me up at 7 am every weekday",
];
