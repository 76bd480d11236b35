import java.io.File;

/**
 * A program that asks: it prints "name? " without an end of line and waits until FOLDER/answer appears, then prints
 * the answer's line and waits for FOLDER/end. It stores and loads Box.value all the while.
 */
public final class Prompts {
    static final class Box {
        volatile int value;
    }

    private Prompts() {}

    private static void await(File file, Box box) throws InterruptedException {
        while (!file.exists()) {
            for (int i = 0; i < 100; i++) {
                box.value++;
            }
            Thread.sleep(5);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        Box box = new Box();
        System.out.print("name? ");
        System.out.flush();
        await(new File(args[0], "answer"), box);
        System.out.println("Anna");
        await(new File(args[0], "end"), box);
        System.out.println("DONE");
    }
}
