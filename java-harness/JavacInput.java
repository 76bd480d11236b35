import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * What the compiler test compiles: an expression language with a scanner, a parser, an evaluator and
 * a printer. Generics, nested and anonymous classes, lambdas, enums, records, switches, exceptions
 * and loops, so that the compiler has something to do. Running it prints the values of its examples.
 */
public final class JavacInput {
    enum Kind {
        NUMBER,
        NAME,
        PLUS,
        MINUS,
        TIMES,
        OPEN,
        CLOSE,
        END
    }

    record Token(Kind kind, String text) {}

    interface Expression {
        double value(Map<String, Double> names);

        <R> R accept(Visitor<R> visitor);
    }

    interface Visitor<R> {
        R number(double value);

        R name(String name);

        R binary(char op, Expression left, Expression right);
    }

    record Literal(double constant) implements Expression {
        public double value(Map<String, Double> names) {
            return constant;
        }

        public <R> R accept(Visitor<R> visitor) {
            return visitor.number(constant);
        }
    }

    record Name(String name) implements Expression {
        public double value(Map<String, Double> names) {
            Double value = names.get(name);
            if (value == null) {
                throw new IllegalArgumentException("no value for " + name);
            }
            return value;
        }

        public <R> R accept(Visitor<R> visitor) {
            return visitor.name(name);
        }
    }

    record Binary(char op, Expression left, Expression right) implements Expression {
        public double value(Map<String, Double> names) {
            double a = left.value(names);
            double b = right.value(names);
            switch (op) {
                case '+':
                    return a + b;
                case '-':
                    return a - b;
                default:
                    return a * b;
            }
        }

        public <R> R accept(Visitor<R> visitor) {
            return visitor.binary(op, left, right);
        }
    }

    static List<Token> scan(String text) {
        List<Token> tokens = new ArrayList<>();
        int i = 0;
        while (i < text.length()) {
            char c = text.charAt(i);
            int start = i++;
            if (Character.isDigit(c)) {
                while (i < text.length() && Character.isDigit(text.charAt(i))) {
                    i++;
                }
                tokens.add(new Token(Kind.NUMBER, text.substring(start, i)));
            } else if (Character.isLetter(c)) {
                while (i < text.length() && Character.isLetter(text.charAt(i))) {
                    i++;
                }
                tokens.add(new Token(Kind.NAME, text.substring(start, i)));
            } else if (c != ' ') {
                int at = "+-*()".indexOf(c);
                Kind[] kinds = {Kind.PLUS, Kind.MINUS, Kind.TIMES, Kind.OPEN, Kind.CLOSE};
                tokens.add(new Token(kinds[at], String.valueOf(c)));
            }
        }
        tokens.add(new Token(Kind.END, ""));
        return tokens;
    }

    static final class Parser {
        private final List<Token> tokens;
        private int next;

        Parser(List<Token> tokens) {
            this.tokens = tokens;
        }

        Expression sum() {
            Expression left = product();
            while (peek() == Kind.PLUS || peek() == Kind.MINUS) {
                char op = tokens.get(next++).text().charAt(0);
                left = new Binary(op, left, product());
            }
            return left;
        }

        private Expression product() {
            Expression left = atom();
            while (peek() == Kind.TIMES) {
                next++;
                left = new Binary('*', left, atom());
            }
            return left;
        }

        private Expression atom() {
            Token token = tokens.get(next++);
            return switch (token.kind()) {
                case NUMBER -> new Literal(Double.parseDouble(token.text()));
                case NAME -> new Name(token.text());
                case OPEN -> {
                    Expression inner = sum();
                    next++;
                    yield inner;
                }
                default -> throw new IllegalStateException("unexpected " + token);
            };
        }

        private Kind peek() {
            return tokens.get(next).kind();
        }
    }

    static String print(Expression expression) {
        return expression.accept(new Visitor<String>() {
            public String number(double value) {
                return Double.toString(value);
            }

            public String name(String name) {
                return name;
            }

            public String binary(char op, Expression left, Expression right) {
                return "(" + left.accept(this) + op + right.accept(this) + ")";
            }
        });
    }

    public static void main(String[] args) {
        Map<String, Double> names = new HashMap<>();
        names.put("x", 3.0);
        names.put("y", 4.0);
        Function<String, Expression> parse = text -> new Parser(scan(text)).sum();
        for (String text : List.of("1 + 2 * 3", "(x + y) * (x - y)", "x * x + y * y")) {
            Expression expression = parse.apply(text);
            System.out.println(print(expression) + " = " + expression.value(names));
        }
    }
}
