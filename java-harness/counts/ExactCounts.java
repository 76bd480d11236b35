package counts;

import held.Base;
import held.Constants;
import held.Derived;
import held.Made;
import held.Plain;
import held.Volatile;

/**
 * Known numbers of loads and stores of everything in package {@code held} and of arrays. Arguments:
 * threads, rounds, collections (0: no churn), and {@code silent} to print no expectations. One thread
 * is called {@code solo}, several are {@code worker-0} and so on. Thread main makes all measured
 * objects and initialises all measured classes. Prints a sum of everything loaded that no other thread
 * stores to: it must not change under the agent.
 */
public final class ExactCounts extends Thread {
    private final int worker;
    private final int rounds;
    private final int collections;
    private int sum;

    /** What was loaded from fields that all workers store to. */
    private int racing;

    private ExactCounts(String name, int worker, int rounds, int collections) {
        super(name);
        this.worker = worker;
        this.rounds = rounds;
        this.collections = collections;
    }

    @Override
    public void run() {
        Gate.pass();
        String thread = getName();
        for (int round = 0; round < rounds; round++) {
            while (collections > 0 && Churn.done < round * collections / rounds) {
                pause();
            }
            sum += PlainFields.round(PlainFields.all[worker], worker, thread);
            sum += VolatileFields.round(VolatileFields.all[worker], worker, thread);
            racing += StaticFields.round(this, worker, thread);
            racing += VolatileStaticFields.round(this, worker, thread);
            sum += Elements.round(Arrays.all[worker], worker, thread);
            sum += Inheritance.round(worker, thread);
        }
    }

    private static void pause() {
        try {
            Thread.sleep(2);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        int threads = Integer.parseInt(args[0]);
        int rounds = Integer.parseInt(args[1]);
        int collections = Integer.parseInt(args[2]);
        Expect.silent = args.length > 3 && args[3].equals("silent");
        PlainFields.all = new Plain[threads];
        VolatileFields.all = new Volatile[threads];
        Arrays.all = new Arrays[threads];
        Inheritance.bases = new Base[threads];
        Inheritance.deriveds = new Derived[threads];
        Inheritance.made = new Made[threads];
        // The interface's initialiser stores TABLE, then this line loads it.
        if (Constants.TABLE != null) {
            Expect.field("held.Constants", "TABLE", "static", "plain", "store", "main", 1);
            Expect.field("held.Constants", "TABLE", "static", "plain", "load", "main", 1);
        }
        ExactCounts[] workers = new ExactCounts[threads];
        for (int w = 0; w < threads; w++) {
            PlainFields.all[w] = new Plain();
            VolatileFields.all[w] = new Volatile();
            Arrays.all[w] = new Arrays();
            Inheritance.bases[w] = new Base();
            Inheritance.deriveds[w] = new Derived();
            String name = threads == 1 ? "solo" : "worker-".concat(Integer.toString(w));
            workers[w] = new ExactCounts(name, w, rounds, collections);
        }
        Churn churn = new Churn(collections);
        churn.start();
        for (Thread t : workers) {
            t.start();
        }
        Gate.open();
        int sum = 0;
        int racing = 0;
        for (ExactCounts t : workers) {
            t.join();
            sum += t.sum;
            racing += t.racing;
        }
        churn.join();
        if (!Expect.silent) {
            Expect.print();
        }
        System.out.println("CHECK sum=".concat(Integer.toString(sum)));
        if (racing == 1) {
            System.out.println("unlikely");
        }
        System.out.println("DONE");
    }
}
