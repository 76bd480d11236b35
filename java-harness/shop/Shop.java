package com.acme.shop;

import java.lang.reflect.Field;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;

/**
 * The demo: three clerks place orders at the same time, a warehouse ships them, an auditor adds the totals up by
 * reflection. What it prints does not depend on the order in which the threads run.
 *
 * <p>Usage: Shop [ORDERS per clerk]
 */
public final class Shop {
  private static final int CLERKS = 3;
  private static final int CUSTOMERS = 40;
  private static final int ARTICLES = 64;
  private static final int PIECES = 100_000;

  private final Map<Integer, Order> orders = new HashMap<>();
  private final Customer[] customers = new Customer[CUSTOMERS];
  private final Warehouse warehouse = new Warehouse(ARTICLES, PIECES);

  private Shop() {
    for (int i = 0; i < CUSTOMERS; i++) {
      customers[i] = new Customer(i, "customer" + i, "customer" + i + "@example.com", i % 4 * 5);
    }
  }

  Order makeOrder(int id) {
    OrderLine[] lines = new OrderLine[2 + id % 4];
    for (int i = 0; i < lines.length; i++) {
      lines[i] = new OrderLine((id * 7 + i * 3) % ARTICLES, 1 + (id + i) % 5, 100 + (id * 13 + i * 29) % 900);
    }
    Customer customer = customers[id % CUSTOMERS];
    synchronized (customer) {
      customer.ordersPlaced++;
    }
    return id % 10 == 0 ? new RushOrder(id, customer, lines) : new Order(id, customer, lines);
  }

  void keep(Order order) {
    synchronized (orders) {
      orders.put(order.id, order);
    }
  }

  Collection<Order> orders() {
    return orders.values();
  }

  private long audit() throws ReflectiveOperationException {
    Field total = Order.class.getDeclaredField("totalCents");
    total.setAccessible(true);
    long sum = 0;
    for (Order order : orders.values()) {
      sum += total.getLong(order);
    }
    return sum;
  }

  public static void main(String[] args) throws Exception {
    int perClerk = args.length > 0 ? Integer.parseInt(args[0]) : 300;
    Shop shop = new Shop();

    Thread[] clerks = new Thread[CLERKS];
    for (int i = 0; i < CLERKS; i++) {
      clerks[i] = new Thread(new Clerk(shop, i * perClerk, perClerk), "clerk-" + i);
      clerks[i].start();
    }
    for (Thread clerk : clerks) {
      clerk.join();
    }

    Thread shipping = new Thread(new Shipping(shop, shop.warehouse), "warehouse");
    shipping.start();
    shipping.join();

    long revenue = shop.audit();
    long pieces = shop.warehouse.count();
    System.out.println("orders  " + Order.created);
    System.out.println("revenue " + revenue / 100 + "." + revenue / 10 % 10 + revenue % 10);
    System.out.println("shipped " + shop.warehouse.picked + " pieces, " + pieces + " left");
  }
}
