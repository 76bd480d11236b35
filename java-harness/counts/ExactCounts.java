package counts;

import held.Base;
import held.Constants;
import held.Derived;
import held.Made;
import held.Plain;
import held.Volatile;

/**
 * Known numbers of loads and stores of everything in package {@code held} and of arrays.
 * Arguments: threads, rounds, collections (0: no churn). With one thread it is called {@code solo},
 * else they are {@code worker-0} and so on. All measured objects are made,
 * and measured classes initialised, by thread main.
 */
public final class ExactCounts extends Thread {
    private final int worker;
    private final int rounds;
    private final int collections;
    private int sum;

    private ExactCounts(String name, int worker, int rounds, int collections) {
        super(name);
        this.worker = worker;
        this.rounds = rounds;
        this.collections = collections;
    }

    @Override
    public void run() {
        String thread = getName();
        for (int round = 0; round < rounds; round++) {
            while (collections > 0 && Churn.done < round * collections / rounds) {
                pause();
            }
            sum += PlainFields.round(PlainFields.all[worker], worker, thread);
            sum += VolatileFields.round(VolatileFields.all[worker], worker, thread);
            sum += StaticFields.round(this, worker, thread);
            sum += VolatileStaticFields.round(this, worker, thread);
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
        Thread[] workers = new Thread[threads];
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
        for (Thread t : workers) {
            t.join();
        }
        churn.join();
        Expect.print();
        System.out.println("DONE");
    }
}
